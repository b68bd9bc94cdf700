# ruff: noqa: RUF001 - sentences in several languages
"""What the person already did, or cannot do."""

import re

import pytest

from gpudoctor.conclusions.attempts import attempts
from gpudoctor.symptoms.matching import recognise


@pytest.mark.parametrize(
    ("text", "command"),
    [
        pytest.param("I already tried rebooting, but no luck", "sudo reboot", id="reboot"),
        pytest.param("still the same after a reboot", "sudo reboot", id="after a reboot"),
        pytest.param("a restart did not help", "sudo reboot", id="a restart"),
        pytest.param(
            "I reinstalled nothing, but have reinstalled the NVIDIA driver", "sudo ubuntu-drivers install", id="driver"
        ),
        *(
            pytest.param(text, "sudo reboot", id=text)
            for text in (
                "I rebooted already, no change.",
                "restarted the machine, same error",
                "a reboot brings it back for 20 minutes",
                "Ich habe den Rechner schon neu gestartet",
                "ein Neustart hilft auch nicht",
                "j'ai redémarré la machine",
                "ya he reiniciado el equipo",
                "ho già riavviato il PC",
                "já reiniciei o servidor",
                "перезагрузил, не помогло",
                "重启过了还是不行",
                "再起動しても直りません",
            )
        ),
        *(
            pytest.param(text, "sudo ubuntu-drivers install", id=text)
            for text in (
                "aggiornare il driver NON è possibile",
                "non possiamo aggiornare il driver",
                "impossible de mettre à jour le pilote",
                "no puedo actualizar el driver",
                "não posso atualizar o driver",
                "ich kann den Treiber leider nicht aktualisieren",
                "не могу обновить драйвер",
                "不能升级显卡驱动",
                "ドライバーは更新できません",
            )
        ),
        *(
            pytest.param(text, "sudo modprobe nvidia", id=text)
            for text in (
                "Non ho i permessi di root",
                "je n'ai pas les droits root",
                "no tengo permisos de root",
                "não tenho acesso root",
                "у меня нет прав root",
                "我没有root权限",
            )
        ),
        *(
            pytest.param(text, command, id=text)
            for text, command in (
                (
                    "I ran nvidia-ctk runtime configure and restarted",
                    "sudo nvidia-ctk runtime configure --runtime=docker",
                ),
                ("I already run docker with --shm-size=8g", "docker run --gpus all --shm-size=8g IMAGE"),
                ("rmmod nvidia_uvm; modprobe nvidia_uvm did not help", "sudo rmmod nvidia_uvm"),
                ("I already use batch size 1 and fp16", "Make the job smaller: a smaller batch size"),
                ("I'm not allowed to install WSL here", "wsl --install"),
                ("I also set PYTORCH_CUDA_ALLOC_CONF=x", "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"),
                ("I enrolled the key already", "sudo mokutil --import /var/lib/dkms/mok.pub"),
                ("I have PYTORCH_ENABLE_MPS_FALLBACK=1 set", "export PYTORCH_ENABLE_MPS_FALLBACK=1"),
            )
        ),
        pytest.param("I cannot unset CUDA_VISIBLE_DEVICES", "unset CUDA_VISIBLE_DEVICES", id="unset"),
        pytest.param("I don't have sudo rights on the cluster", "sudo modprobe nvidia", id="no root"),
    ],
)
def test_what_was_tried(text: str, command: str) -> None:
    found = attempts(tuple(item.symptom for item in recognise(text)))
    assert any(re.search(pattern, command) for pattern in found.commands)


@pytest.mark.parametrize(
    "text",
    [
        "please reboot the machine",
        "it works until I reboot",
        "install the driver first",
        "As a temporary fix, you can set the environment variable `PYTORCH_ENABLE_MPS_FALLBACK=1` to use the CPU",
        "docker run --shm-size=64m app",
        "then run nvidia-ctk runtime configure --runtime=docker",
    ],
)
def test_advice_of_others_is_no_attempt(text: str) -> None:
    assert attempts(tuple(item.symptom for item in recognise(text))).commands == ()
