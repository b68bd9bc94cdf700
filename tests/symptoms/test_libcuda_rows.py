"""What the messages about libcuda name."""

import pytest

from gpudoctor.symptoms.matching import recognise


@pytest.mark.parametrize(
    ("text", "file"),
    [
        ("libcuda.so cannot found!", None),
        (
            "libcuda.so cannot found! Possible files are located at ['/lib64/libcuda.so.1', '/lib/libcuda.so.1'].",
            "/lib64/libcuda.so.1",
        ),
        ("libcuda.so cannot found! Possible files are located at [].", None),
    ],
)
def test_the_file_that_triton_names(text: str, file: str | None) -> None:
    found = {item.symptom.kind: item.symptom for item in recognise(text)}
    assert found["libcuda-not-found-by-triton"].names.get("file") == file


@pytest.mark.parametrize(
    "text",
    [
        "RuntimeError: Error 803: system has unsupported display driver / cuda driver combination",
        "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
        "cuInit returned 803",
        "CUDA error: 803",
        "RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 803",
    ],
)
def test_error_803_has_one_code_however_it_is_put(text: str) -> None:
    assert [item.symptom.code for item in recognise(text) if item.symptom.code] == ["cuda-803"]


def test_another_number_is_not_803() -> None:
    assert not [item for item in recognise("Error 8035 in line 803") if item.symptom.code == "cuda-803"]
