"""No key, user or host that a machine or a text shows is in a report or in a snapshot, in whatever format."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gpudoctor.data.environment_variables import environment_variables, variables_with_paths
from gpudoctor.engine.checkup import Rules
from gpudoctor.engine.runner import run_checks
from gpudoctor.model import Environment, Snapshot
from gpudoctor.parsers.containers import VARIABLES, variables_of
from gpudoctor.privacy import mask, mask_pasted, mask_secrets
from gpudoctor.probes.environment import parse_environment
from gpudoctor.probes.host import ProbeContext
from gpudoctor.readers.report import read_texts
from gpudoctor.reporters import json_report
from gpudoctor.reporters.formats import FORMATS, Run, render
from gpudoctor.reporters.terminal import Screen
from gpudoctor.untrusted import HIDDEN, shown_value
from tests.own_checks import own_checks

A, X = "AbCdEfGh1234IjKlMnOp5678QrStUvWx90YzAbCd", "0123456789abcdef" * 4
KEYS = {
    "GitHub classic": f"ghp_{A[:36]}", "GitHub OAuth": f"gho_{A[:36]}", "GitHub user": f"ghu_{A[:36]}",
    "GitHub server": f"ghs_{A[:36]}", "GitHub refresh": f"ghr_{A[:36]}", "GitHub fine-grained": f"github_pat_11{A}",
    "GitLab": f"glpat-{A[:20]}", "Hugging Face": f"hf_{A[:34]}", "Hugging Face organisation": f"api_org_{A[:34]}",
    "OpenAI": f"sk-proj-{A}", "OpenAI old": f"sk-{A}", "Anthropic": f"sk-ant-api03-{A}AA",
    "AWS id": "AKIAIOSFODNN7EXAMPLE", "AWS session": "ASIAIOSFODNN7EXAMPLE",
    "Azure": f"abc8Q~{A[:34]}", "Google": f"AIza{A[:35]}", "Google OAuth": f"ya29.{A}",
    "Google client": f"GOCSPX-{A[:28]}",
    "Slack bot": f"xoxb-123456789012-{A[:24]}", "Slack app": f"xapp-1-{A[:24]}",
    "Slack hook": f"https://hooks.slack.com/services/T0000/B0000/{A[:24]}", "Stripe": f"sk_live_{A[:24]}",
    "Stripe restricted": f"rk_live_{A[:24]}", "Stripe hook": f"whsec_{A[:32]}", "npm": f"npm_{A[:36]}",
    "PyPI": f"pypi-AgEIcHlwaS5vcmc{A}", "Docker": f"dckr_pat_{A[:27]}",
    "JWT": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJlZGF0YQ", "Databricks": f"dapi{X[:32]}",
    "Telegram": f"123456789:AA{A[:33]}", "Twilio": f"SK{X[:32]}", "Twilio account": f"AC{X[:32]}",
    "SendGrid": f"SG.{A[:22]}.{A}", "Mailgun": f"key-{X[:32]}", "DigitalOcean": f"dop_v1_{X}", "NVIDIA": f"nvapi-{A}",
    "Weights & Biases": f"wandb_v1_{A}", "Groq": f"gsk_{A}", "Replicate": f"r8_{A[:37]}", "xAI": f"xai-{A}",
    "Perplexity": f"pplx-{A}", "RunPod": f"rpa_{A}", "Supabase": f"sbp_{X[:40]}", "Notion": f"ntn_{A}",
    "Linear": f"lin_api_{A}", "Grafana": f"glsa_{A}", "Sentry": f"sntrys_{A}", "Postman": f"PMAK-{A}",
    "New Relic": f"NRAK-{A[:27]}", "Heroku": f"HRKU-{A}", "Figma": f"figd_{A}", "Shopify": f"shpat_{X[:32]}",
    "Square": f"sq0atp-{A[:22]}", "Tailscale": f"tskey-auth-{A}", "Vault": f"hvs.{A}", "Doppler": f"dp.pt.{A}",
    "Atlassian": f"ATATT3{A}", "age": "AGE-SECRET-KEY-1QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7LQPZRY9X8GF2TVDW0S3JN54",
    "Together": f"tgp_v1_{A}", "LangSmith": f"lsv2_pt_{X[:32]}_{X[:10]}", "Pinecone": f"pcsk_{A[:6]}_{A}",
    "Fly": f"FlyV1 fm2_{A}", "Buildkite": f"bkua_{X[:40]}", "CircleCI": f"CCIPAT_{A[:22]}_{X[:40]}",
    "Bitbucket": f"ATBB{A[:32]}", "Dynatrace": f"dt0c01.{A[:24]}.{A}", "Vault batch": f"hvb.{A}",
    "Doppler service": f"dp.st.prd.{A}", "Fireworks": f"fw_{A[:24]}", "ElevenLabs": f"sk_{X[:48]}",
    "Cerebras": f"csk-{A}", "Jina": f"jina_{A}", "PostHog": f"phx_{A}", "Netlify": f"nfp_{A}", "Render": f"rnd_{A}",
    "Sonar": f"squ_{X[:40]}", "Pulumi": f"pul-{X[:40]}", "Prefect": f"pnu_{A[:36]}", "Typeform": f"tfp_{A}",
    "Terraform": f"{A[:14]}.atlasv1.{A}{A}", "Hugging Face OAuth": f"hf_oauth_{A}",
    "private key": f"-----BEGIN OPENSSH PRIVATE KEY-----\n{A}\n{A}\n-----END OPENSSH PRIVATE KEY-----",
}  # fmt: skip
"""A key of each kind, all made up."""
NAMED = {
    "AWS secret": f"AWS_SECRET_ACCESS_KEY={A}", "Azure storage": f"AccountName=x;AccountKey={A}==;",
    "service account": f'"private_key_id": "{X[:40]}"', "Docker login": f'"auth": "{A}"',
    "Kaggle": f'"key_secret": "{A}"',
    "Weights & Biases old": f"WANDB_API_KEY={X[:40]}", "header": f"Authorization: Bearer {A}",
    "basic": f"authorization: Basic {A}", "option": f"vllm serve --api-key {A}", "address": f"https://me:{A}@example.org/x",
    "password": f"password: '{A}'", "password with blanks": f'password = "x {A}"', "pass": f"DB_PASS={A}",
    ".netrc": f"machine api.wandb.ai\n  login user\n  password {A}", "curl": f"curl -sL -u me:{A} https://example.org",
    "login": f"docker login -u me -p {A} example.org", "sshpass": f"sshpass -p '{A}' ssh host",
    "mysql": f"mysql -u me -p{A}",
    "cookie": f"Set-Cookie: a=b; sid={A}; Path=/", "conda": f"https://conda.anaconda.org/t/{A}/main",
    "address with two signs": f"amqps://me:pw@{A}@host/x", "environ": f"os.environ['HF_TOKEN'] = '{A}'",
    "ngrok": f"ngrok config add-authtoken {A}", "Weights & Biases login": f"wandb login {X[:40]}",
    "signature": f"?sv=2020&sig={A}",
}  # fmt: skip
"""What is a key by the word before it, or by its place."""
ALL = {**KEYS, **NAMED}


def is_shown(key: str, text: str) -> bool:
    """Return whether a part of the key that nobody could guess is in the text."""
    secret = max(re.findall(r"[A-Za-z0-9]+", key), key=len)
    return any(secret[at : at + 12] in text for at in range(len(secret) // 3, len(secret) - 11))


@pytest.mark.parametrize("kind", ALL)
def test_a_key_is_masked_in_any_text(kind: str) -> None:
    for text in (
        f"it says {ALL[kind]} here",
        f"x={ALL[kind]}",
        f"/opt/{ALL[kind]}/lib",
        f"a:{ALL[kind]}:b",
        f"\x1b[1;31m{ALL[kind]}\x1b[0m",
        f"a\\n{ALL[kind]}",
        f"\\x1b[2J{ALL[kind]}",
    ):
        masked = mask_secrets(text)
        assert "***" in masked
        assert not is_shown(ALL[kind], masked), masked
    assert mask_secrets(masked) == masked


@pytest.mark.parametrize("kind", KEYS)
def test_a_key_is_in_no_variable(kind: str) -> None:
    alice = ProbeContext(environ={}, directory=Path(), home="/home/alice")
    for value in (KEYS[kind], f"/opt/{KEYS[kind]}/lib:/usr/lib", f"0,{KEYS[kind]}"):
        kept = parse_environment(mask(dict.fromkeys(environment_variables(), value), alice)).variables
        assert not any(is_shown(KEYS[kind], text) for text in kept.values())
        assert not any(
            is_shown(KEYS[kind], t) for t in variables_of([f"{n}={mask_secrets(value)}" for n in VARIABLES]).values()
        )


@pytest.mark.parametrize("name", sorted(environment_variables()))
def test_what_is_no_value_of_a_variable_is_hidden(name: str) -> None:
    paths = name in variables_with_paths()
    for key in (
        A,
        X,
        "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "a\nb",
        f"/opt/{A}/lib" if paths else "pässword",
    ):
        assert shown_value(key, paths) == HIDDEN


@pytest.mark.parametrize(
    ("value", "paths"),
    [
        ("0,1", False), ("", False), ("-1", False), ("NoDevFiles", False), ("all", False), ("0, 1", False),
        ("GPU-00000000-0000-0000-0000-000000000001,MIG-GPU-00000000-0000-0000-0000-000000000001/1/0", False),
        ("expandable_segments:True,garbage_collection_threshold:0.8,roundup_power2_divisions:[256:1,>:8]", False),
        ("cuda>=12.4 brand=tesla,driver>=470,driver<471 brand=nvidiartxvirtualworkstation,driver>=535", False),
        ("7.5;8.0 8.6+PTX", False), ("arch=compute_70,code=sm_70", False), ("50%", False), ("10.3.0", False),
        ("/usr/local/cuda-12.4/lib64:~/miniconda3/envs/my env/lib::/usr/lib/wsl/lib", True), ("stubs", True),
        ("", True),
        (r"C:\Program Files\NVIDIA GPU Computing Toolkit\CUDA\v12.4;D:\b", True), ("$HOME/x:%CUDA_PATH%", True),
        ("/nix/store/0c5b8k2f3m9v7q1x4w6z8y0a2d4f6h8j-cuda/lib", True), ("src:.", True), ("/usr/bin/nvcc", True),
    ],
)  # fmt: skip
def test_what_variables_are_set_to_is_shown(value: str, paths: bool) -> None:
    assert shown_value(value, paths) == value


REPORT = """alice@lab42:/data/users/alice$ export LD_LIBRARY_PATH=/scratch/alice/{key}/lib:/usr/lib
alice@lab42:~$ CUDA_VISIBLE_DEVICES={key} python train.py --token {key}
$ whoami
alice
PyTorch version: 2.9.0+cpu
Is CUDA available: False
Python executable: /net/lab42/alice/{key}/bin/python
torch==2.9.0+cpu @ https://me:{key}@example.org/alice/torch.whl
D:\\Users\\alice\\{key}\\train.py
C:\\Documents and Settings\\alice\\venv\\Scripts\\python.exe
RuntimeError: CUDA error: {key}: /u/alice/lib/libcuda.so.1 cannot be opened
AssertionError: Torch not compiled with CUDA enabled {key}
docker run -e HF_TOKEN={key} -e CUDA_VISIBLE_DEVICES={key} -v /srv/alice/{key}:/x alice/image:{key} python x.py
| 0 N/A N/A 4321 C /home/alice/{key}/bin/python 1024MiB |
Nov  3 10:00:00 lab42 kernel: NVRM: Xid (PCI:0000:02:00): 79, pid=1, name={key}
[pip3] flash-attn@2.8.1
"""


@pytest.mark.parametrize("kind", KEYS)
def test_nothing_planted_in_a_report_is_in_any_format(kind: str) -> None:
    key = KEYS[kind]
    snapshot = read_texts([("report.txt", REPORT.replace("{key}", key).encode())])
    report = run_checks(own_checks(), snapshot)
    run = Run(fail_on="error", exit_status=1, screen=Screen(width=200, verbosity=1), rules=Rules())
    outputs = [*(render(name, report, run) for name in FORMATS), json_report.render_snapshot(snapshot)]
    for text in outputs:
        assert not is_shown(key, text)
        assert "alice" not in text.replace("alice/image", "")
        assert "lab42" not in text


def test_a_requirement_is_no_address() -> None:
    for text in ("flash-attn@2.8.1", "pkg @ git+https://github.com/a/b@v1.2.dev", "a@v2.1.post1", "git@github.com:a/b"):
        assert mask_pasted(text) == text
    for text in ("alice@example.org", "alice.b@163.com", "<a-b+c@mail.example.co.uk>"):
        assert "user@host" in mask_pasted(text)
        assert "example" not in mask_pasted(text)


def test_the_user_is_masked_in_paths_of_the_machine_and_a_usual_name_is_not() -> None:
    def of(user: str) -> ProbeContext:
        return ProbeContext(environ={"USER": user}, directory=Path(), home="/root")

    assert mask("/scratch/alice/env/bin/python", of("alice")) == "/scratch/user/env/bin/python"
    assert mask("/usr/lib/nvidia/libcuda.so", of("nvidia")) == "/usr/lib/nvidia/libcuda.so"
    assert mask("/opt/alice2/alice.py", of("alice")) == "/opt/alice2/alice.py"


def test_a_snapshot_keeps_no_variable_that_was_hidden() -> None:
    snapshot = Snapshot(environment=Environment(variables={"CUDA_VISIBLE_DEVICES": HIDDEN}))
    assert HIDDEN in json_report.render_snapshot(snapshot)


@pytest.mark.parametrize(
    "text",
    [
        "docker run -u 1000:1000 -p 8080:80 nvidia/cuda:12.8.1-base-ubuntu24.04",
        "curl -u 1.0 https://example.org/t/torch/",
        "jina_embeddings_v2_base_en secret_agent_model sk_learn rnd_forest",
        "The login works, and -pthread is set",
        "_ZN3c106detail14torchInternalAssertFailEPKcS2_jS2_RKSs",
        "as-is, ak-47 and fw_download",
    ],
)
def test_what_looks_like_a_key_and_is_none_stays(text: str) -> None:
    assert mask_pasted(text) == text
