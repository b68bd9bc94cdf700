"""The libraries that need the driver."""

from dataclasses import replace
from typing import Any

import pytest

from gpudoctor.conclusions import Facts
from gpudoctor.model import (
    Consumers,
    CudaVersion,
    Cupy,
    CupyRuntime,
    Driver,
    DriverVersion,
    Package,
    PackageVersion,
    Snapshot,
    Symptom,
    System,
    Toolkit,
    Torch,
    TorchRuntime,
)

CUPY = Cupy(
    distributions=(Package(name="cupy-cuda12x", version=PackageVersion("14.2.0")),), platform="cuda", cuda_major=12
)
R535 = Driver(version=DriverVersion((535, 129, 3)))
VERSION_ALONE = Torch(version=PackageVersion("2.9.0"))
UNAVAILABLE = TorchRuntime(available=False)


def consumers_of(**sections: Any) -> Consumers:
    found = Facts(Snapshot(**sections)).get("consumers")
    assert isinstance(found, Consumers)
    return found


@pytest.mark.parametrize(
    ("torch", "cupy", "asked"),
    [
        (Torch(build="cuda"), None, True),
        (Torch(build="cpu"), CUPY, True),
        (Torch(build="cpu"), Cupy(distributions=()), False),
        (Torch(installed=False), None, False),
        (Torch(), None, None),
        (None, None, None),
    ],
)
def test_who_asks_for_cuda(torch: Torch | None, cupy: Cupy | None, asked: bool | None) -> None:
    assert consumers_of(torch=torch, cupy=cupy).ask_for_cuda is asked


@pytest.mark.parametrize(
    ("sections", "expected"),
    [
        pytest.param({"torch": Torch(cuda_version=CudaVersion(13, 0))}, ("torch.cuda_version", False), id="files"),
        pytest.param(
            {"torch_runtime": TorchRuntime(cuda_version=CudaVersion(12, 8), available=True)},
            ("torch_runtime.cuda_version", True),
            id="import",
        ),
        pytest.param({"cupy": CUPY}, ("cupy.cuda_major", False), id="wheel"),
        pytest.param(
            {"cupy": CUPY, "cupy_runtime": CupyRuntime(runtime_cuda_version=CudaVersion(12, 9), device_count=1)},
            ("cupy_runtime.runtime_cuda_version", True),
            id="CuPy's runtime",
        ),
    ],
)
def test_where_the_version_is_from(sections: dict[str, Any], expected: tuple[str, bool]) -> None:
    (consumer,) = consumers_of(**sections).libraries
    assert ((consumer.fact, consumer.works), consumer.likely) == (expected, "")


@pytest.mark.parametrize(
    ("cuda", "runs"),
    [
        pytest.param(CudaVersion(13, 0), False, id="newer major"),
        pytest.param(CudaVersion(12, 8), True, id="newer minor"),
    ],
)
def test_whether_the_driver_runs_it(cuda: CudaVersion, runs: bool) -> None:
    found = consumers_of(torch=Torch(cuda_version=cuda), toolkit=Toolkit(nvcc_version=cuda), driver=R535)
    assert [item.runs for item in (*found.libraries, found.nvcc) if item] == [runs, runs]


def test_the_package_cuda_compat_offers_more_than_the_driver() -> None:
    driver = Driver(version=R535.version, cuda_version=CudaVersion(13, 0))
    assert consumers_of(torch=Torch(cuda_version=CudaVersion(13, 0)), driver=driver).libraries[0].runs is True


def test_an_unknown_driver() -> None:
    assert consumers_of(torch=Torch(cuda_version=CudaVersion(13, 0))).libraries[0].runs is None


def test_a_version_alone_gives_a_likely_cuda_version() -> None:
    (consumer,) = consumers_of(torch=VERSION_ALONE, torch_runtime=UNAVAILABLE).libraries
    assert consumer.likely
    assert "probably" in consumer.says
    assert (consumer.fact, consumer.cuda_version) == ("torch.version", CudaVersion(12, 8))


@pytest.mark.parametrize(
    ("torch", "runtime", "system"),
    [
        pytest.param(VERSION_ALONE, TorchRuntime(), System(os="linux"), id="nothing failed"),
        pytest.param(VERSION_ALONE, UNAVAILABLE, System(os="windows"), id="Windows' default is for the CPU"),
        pytest.param(Torch(version=PackageVersion("2.9.0+cpu")), UNAVAILABLE, System(), id="variant named"),
        pytest.param(Torch(version=PackageVersion("2.9.0"), build="cpu"), UNAVAILABLE, System(), id="built without"),
    ],
)
def test_a_version_alone_gives_none(torch: Torch, runtime: TorchRuntime, system: System) -> None:
    assert consumers_of(torch=torch, torch_runtime=runtime, system=system).libraries == ()


CUDA_13_ASKED = Symptom(kind="conda-cuda-asked", text="pytorch-cuda=13.0", names={"version": "13.0"}, fact="asked")
R580 = Driver(version=DriverVersion((580, 95, 5)))


@pytest.mark.parametrize(
    ("torch", "available", "driver", "asked", "facts"),
    [
        pytest.param(Torch(), False, R535, (CUDA_13_ASKED,), ["asked"], id="the driver does not run it"),
        pytest.param(Torch(build="cuda"), False, R535, (CUDA_13_ASKED,), ["asked"], id="a CUDA build"),
        pytest.param(Torch(build="cpu"), False, R535, (CUDA_13_ASKED,), [], id="a build for the CPU"),
        pytest.param(Torch(), None, R535, (CUDA_13_ASKED,), [], id="nothing failed"),
        pytest.param(Torch(), False, R580, (CUDA_13_ASKED,), [], id="the driver runs it"),
        pytest.param(Torch(), False, Driver(), (CUDA_13_ASKED,), [], id="the driver is unknown"),
        pytest.param(Torch(), False, R535, (CUDA_13_ASKED, CUDA_13_ASKED), ["asked"], id="twice the same"),
        pytest.param(
            Torch(),
            False,
            R535,
            (CUDA_13_ASKED, replace(CUDA_13_ASKED, names={"version": "11.8"})),
            [],
            id="two versions",
        ),
        pytest.param(Torch(), False, R535, (replace(CUDA_13_ASKED, names={"version": "13"}),), [], id="no version"),
        pytest.param(
            Torch(cuda_version=CudaVersion(11, 8)), False, R535, (CUDA_13_ASKED,), ["torch.cuda_version"], id="known"
        ),
    ],
)
def test_the_cuda_that_was_asked_for(
    torch: Torch, available: bool | None, driver: Driver, asked: tuple[Symptom, ...], facts: list[str]
) -> None:
    runtime = TorchRuntime(available=available)
    found = consumers_of(torch=torch, torch_runtime=runtime, driver=driver, symptoms=asked).libraries
    assert [consumer.fact for consumer in found] == facts


TF = Symptom(kind="release-of-tensorflow", text="tensorflow-gpu==1.13", names={"version": "1.13"})
USED = Symptom(kind="gpu-listed-by-tensorflow", text="Created device /GPU:0", library="tensorflow")


@pytest.mark.parametrize(
    ("symptoms", "driver", "names"),
    [
        pytest.param((TF,), Driver(version=DriverVersion((396, 26))), ["tensorflow"], id="CUDA 10.0"),
        pytest.param((TF,), Driver(module_version=DriverVersion((396, 26))), ["tensorflow"], id="the module alone"),
        pytest.param((TF,), Driver(version=DriverVersion((410, 48))), [], id="the driver runs it"),
        pytest.param((TF,), Driver(), [], id="no driver is known"),
        pytest.param((TF, USED), Driver(version=DriverVersion((396, 26))), [], id="it uses the GPU"),
        pytest.param(
            (TF, replace(TF, names={"version": "1.12"})),
            Driver(version=DriverVersion((396, 26))),
            [],
            id="two releases are named",
        ),
    ],
)
def test_tensorflow_counts_if_the_driver_cannot_run_it(
    symptoms: tuple[Symptom, ...], driver: Driver, names: list[str]
) -> None:
    assert [item.name for item in consumers_of(symptoms=symptoms, driver=driver).libraries] == names
