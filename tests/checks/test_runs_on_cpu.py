import pytest

from gpudoctor.model import CheckResult, Outcome, PackageVersion, Severity, Symptom, System, TorchRuntime
from gpudoctor.testing import run_check


def said(kind: str, text: str = "it", library: str = "") -> Symptom:
    return Symptom(kind=kind, text=text, library=library)


def checked(*symptoms: Symptom, **sections: object) -> CheckResult:
    return run_check("runs-on-cpu", symptoms=symptoms, **sections)


def commands(result: CheckResult) -> str:
    return "\n".join(command for remedy in result.findings[0].remedies for command in remedy.commands)


OLLAMA = said("cpu-ollama", "library=cpu", "ollama")
LLAMA = said("cpu-llama", "BLAS = 0", "llama.cpp")
DEVICE = said("cpu-device", "Device: cpu")


@pytest.mark.parametrize(
    ("symptoms", "fix"),
    [
        pytest.param((OLLAMA,), "ollama ps", id="Ollama"),
        pytest.param((LLAMA,), 'CMAKE_ARGS="-DGGML_CUDA=on"', id="llama.cpp"),
        pytest.param((said("onnxruntime-without-cuda", library="onnxruntime"),), "install onnxruntime-gpu", id="ONNX"),
        pytest.param((said("cpu-ctranslate2", library="ctranslate2"),), "nvidia-cublas-cu12", id="CTranslate2"),
        pytest.param((said("cpu-paddle", library="paddle"),), "paddlepaddle-gpu", id="Paddle"),
        pytest.param((said("cpu-boosting", library="xgboost"),), "xgboost", id="XGBoost"),
        pytest.param((said("cpu-tensorflow", library="tensorflow"),), "tensorflow[and-cuda]", id="TensorFlow"),
        pytest.param((DEVICE, said("about-lm-studio")), "lms runtime ls", id="LM Studio"),
    ],
)
def test_each_program_has_its_own_fix_and_none_is_pytorch(symptoms: tuple[Symptom, ...], fix: str) -> None:
    result = checked(*symptoms)
    finding = result.findings[0]
    assert (finding.severity, finding.certain, finding.facts) == (Severity.ERROR, True, ("symptoms[0].text",))
    assert fix in commands(result)
    assert "torch" not in commands(result)


@pytest.mark.parametrize(
    "symptoms", [(DEVICE,), (DEVICE, said("about-comfyui")), (said("cpu-lightning", "", "torch"),)]
)
def test_what_may_compute_with_pytorch_gets_its_cuda_build(symptoms: tuple[Symptom, ...]) -> None:
    assert "https://download.pytorch.org/whl/cu" in commands(checked(*symptoms))


def test_a_cuda_build_is_not_installed_again() -> None:
    runtime = TorchRuntime(version=PackageVersion("2.9.0+cu128"))
    assert "whl/cu" not in commands(checked(DEVICE, torch_runtime=runtime))


def test_windows_gets_commands_of_windows() -> None:
    shown = commands(checked(LLAMA, system=System(os="windows")))
    assert "$env:CMAKE_ARGS = '-DGGML_CUDA=on'" in shown
    assert 'CMAKE_ARGS="' not in shown
    assert "journalctl" not in commands(checked(OLLAMA, system=System(os="windows")))


@pytest.mark.parametrize("symptoms", [(OLLAMA,), (LLAMA,), (DEVICE,)])
def test_if_cuda_cannot_be_the_way_is_another(symptoms: tuple[Symptom, ...]) -> None:
    result = checked(*symptoms, said("amd-gpu-named", "Radeon RX 580"))
    assert "CUDA" not in commands(result).upper().replace("CUDA.IS_AVAILABLE", "")
    assert len(result.findings[0].remedies) == 1


def test_words_of_a_person_are_a_guess() -> None:
    told, complained = (said(kind, "it is only using my CPU") for kind in ("cpu-use-reported", "cpu-use-complaint"))
    (finding,) = checked(told, complained, said("nvidia-gpu-named", "RTX 3060")).findings
    assert (finding.severity, finding.certain, "probably" in finding.summary) == (Severity.INFO, False, True)
    assert checked(told).outcome is Outcome.SKIPPED


def test_if_pytorch_sees_the_gpu_its_program_chooses() -> None:
    assert checked(DEVICE, torch_runtime=TorchRuntime(available=False)).outcome is Outcome.FOUND
    about = said("about-comfyui")
    assert checked(DEVICE, about, torch_runtime=TorchRuntime(available=True)).outcome is Outcome.SKIPPED


@pytest.mark.parametrize("symptoms", [(), (said("nvidia-gpu-named"),)])
def test_a_report_without_such_words_is_not_its_case(symptoms: tuple[Symptom, ...]) -> None:
    assert checked(*symptoms).outcome is Outcome.SKIPPED


def test_the_build_of_another_check_is_left_to_it() -> None:
    assert checked(said("jax-cuda-missing", library="jax")).outcome is Outcome.PASSED
