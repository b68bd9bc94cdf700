"""The workload "signal" against the definitions of what it computes."""

from __future__ import annotations

import math
import sys
from types import SimpleNamespace
from typing import Any

import pytest

np = pytest.importorskip("numpy", minversion="2.0")

from gpudoctor.errors import UsageError  # noqa: E402
from gpudoctor.tuning.workers import spectra  # noqa: E402
from gpudoctor.tuning.workers.precision import make_precision  # noqa: E402
from gpudoctor.tuning.workers.spectra import FRAME, HOP, SAMPLES, Spectra  # noqa: E402

REAL = {"complex64": "float32", "complex128": "float64"}
BOTH = pytest.mark.parametrize("name", REAL)


def workload(name: str = "complex128", device: str = "cpu") -> Spectra:
    return Spectra(device, make_precision(name, device))


def transform_by_definition(values: Any, frequency: int) -> Any:
    """Return one value of the discrete Fourier transform along the last axis."""
    length = values.shape[-1]
    return values @ np.exp(-2j * np.pi * frequency * np.arange(length) / length)


@BOTH
def test_a_batch_is_random_with_zero_mean_and_the_precisions_type(name: str) -> None:
    signals = workload(name).make_batch(32)
    assert (signals.shape, signals.dtype) == ((32, SAMPLES), name)
    assert abs(signals.mean()) < 0.05
    assert len({signal.tobytes() for signal in signals}) == 32
    assert (abs(signals) ** 2).mean() == pytest.approx(1 + 2 * spectra.NOISE**2, abs=0.02)


def test_the_signals_are_tones_chirps_and_symbols_of_the_same_power() -> None:
    bank = spectra.signal_bank()
    assert (bank.shape, bank.dtype) == ((16, SAMPLES), "complex128")
    tones, chirps, symbols = bank[:8], bank[8:12], bank[12:]
    assert np.allclose((abs(tones) ** 2).mean(axis=1), 1, atol=0.02)
    assert np.allclose(abs(bank[8:]), 1)
    bends = np.diff(np.unwrap(np.angle(chirps)), n=2)
    assert np.allclose(bends, bends[:, :1]), "the frequency of a chirp rises evenly"
    assert all(0.1 < bend < 0.5 for bend in bends[:, 0] * SAMPLES / (2 * np.pi))
    assert set(np.abs(np.diff(symbols, axis=1)).nonzero()[1] % 8) == {7}, "a symbol has eight samples"
    assert {complex(round(s.real, 6), round(s.imag, 6)) for s in symbols.ravel()} == {
        complex(re, im) for re in (-0.707107, 0.707107) for im in (-0.707107, 0.707107)
    }


def test_a_tone_is_a_sum_of_three_frequencies() -> None:
    """Of a signal with three tones, the fourth sample on is a combination of the three before: rank 3."""
    for signal in spectra.signal_bank()[:8]:
        shifted = np.stack([signal[n : n + 1000] for n in range(6)])
        assert np.linalg.matrix_rank(shifted, tol=1e-6 * np.linalg.norm(shifted)) == 3


@pytest.mark.parametrize(("device", "used"), [("cuda", 0), ("cuda:0", 0), ("cuda:1", 1)])
def test_on_a_gpu_it_is_made_the_current_one(device: str, used: int, monkeypatch: pytest.MonkeyPatch) -> None:
    current: list[int] = []
    cupy = SimpleNamespace(cuda=SimpleNamespace(Device=lambda n: SimpleNamespace(use=lambda: current.append(n))))
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    assert spectra._array_module(device) is cupy
    assert current == [used]
    assert spectra._array_module("cpu") is np


def test_every_kind_of_signal_comes() -> None:
    bank = spectra.signal_bank()
    nearest = {int(abs(bank.conj() @ signal).argmax()) for signal in workload().make_batch(300)}
    assert nearest == set(range(16))


def test_batches_repeat_with_a_new_workload_and_differ_within_one() -> None:
    one, other = workload(), workload()
    first = one.make_batch(3)
    assert np.array_equal(first, other.make_batch(3))
    assert not np.array_equal(first, one.make_batch(3))


def test_both_precisions_get_the_same_signals() -> None:
    single, double = workload("complex64").make_batch(8), workload("complex128").make_batch(8)
    assert np.abs(single - double).max() < 1e-6


@BOTH
def test_every_result_keeps_the_precision(name: str) -> None:
    signals = workload(name)
    results = signals.step(signals.make_batch(3))
    assert [result.dtype for result in results] == [REAL[name], REAL[name], name, REAL[name]]
    assert [result.shape for result in results] == [(3, 4096), (3, 15, 512), (3, 4096), (3, 15, 13)]
    assert all(np.isfinite(result).all() for result in results)


def test_complex64_differs_by_its_rounding_and_no_more() -> None:
    single, double = workload("complex64"), workload("complex128")
    signals = single.make_batch(4)
    results = zip(single.step(signals), double.step(signals.astype("complex128")), strict=True)
    errors = [np.linalg.norm(one - other) / np.linalg.norm(other) for one, other in results]
    assert 1e-9 < min(errors) <= max(errors) < 1e-5


def test_the_spectrum_is_the_power_of_the_discrete_fourier_transform() -> None:
    signals = workload()
    batch = signals.make_batch(2)
    powers = signals.spectrum(batch)
    for frequency in (0, 1, 17, SAMPLES // 2, SAMPLES - 1):
        expected = abs(transform_by_definition(batch, frequency)) ** 2 / SAMPLES
        assert np.allclose(powers[:, frequency], expected)
    assert np.allclose(powers.sum(axis=1), (abs(batch) ** 2).sum(axis=1)), "Parseval"


def test_a_tone_stands_at_its_frequency_in_every_frame() -> None:
    tone = np.exp(2j * np.pi * 40 / FRAME * np.arange(SAMPLES))[None]
    assert workload().spectrum(tone).argmax() == 40 * SAMPLES // FRAME
    assert (workload().spectrogram(tone).argmax(axis=-1) == 40).all()


def test_a_frame_of_the_spectrogram_by_definition() -> None:
    signals = workload()
    batch = signals.make_batch(2)
    frame = batch[:, 3 * HOP : 3 * HOP + FRAME] * (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(FRAME) / FRAME))
    expected = abs(transform_by_definition(frame, 11)) ** 2 / FRAME
    assert np.allclose(signals.spectrogram(batch)[:, 3, 11], expected)


def test_the_autocorrelation_by_definition() -> None:
    signals = workload()
    batch = signals.make_batch(2)
    found = signals.autocorrelation(batch)
    for lag in (0, 1, 100, SAMPLES - 1):
        expected = (batch[:, lag:] * batch[:, : SAMPLES - lag].conj()).sum(axis=1) / SAMPLES
        assert np.allclose(found[:, lag], expected), lag


def test_mel_filters_add_up_to_one_between_the_first_peak_and_the_last() -> None:
    filters = spectra.mel_filters()
    assert filters.shape == (40, FRAME // 2 + 1)
    assert (filters >= 0).all()
    assert (filters.sum(axis=1) > 0).all(), "a filter without any frequency would give a constant"
    peaks = filters.argmax(axis=1)
    assert (np.diff(peaks) >= 0).all()
    assert np.allclose(filters.sum(axis=0)[peaks[0] + 1 : peaks[-1]], 1)


def test_the_cosine_transform_is_orthonormal_and_a_constant_has_only_its_first_value() -> None:
    rows = spectra.cosine_transform()
    assert np.allclose(rows @ rows.T, np.eye(13))
    assert np.allclose(rows @ np.ones(40), [40**0.5, *[0] * 12])


def test_cepstral_features_of_louder_frames_differ_in_the_first_value_only() -> None:
    signals = workload()
    frames = signals.spectrogram(signals.make_batch(2))
    difference = signals.cepstrum(100 * frames) - signals.cepstrum(frames)
    assert np.allclose(difference[..., 0], np.log(100) * 40**0.5, rtol=1e-6)
    assert np.allclose(difference[..., 1:], 0, atol=1e-6)


def test_an_fft_that_widens_complex64_is_refused() -> None:
    fft = SimpleNamespace(fft=lambda values: np.fft.fft(values).astype("complex128"))
    older = SimpleNamespace(__name__="numpy", fft=fft, zeros=np.zeros)
    spectra._require_own_fft(older, np.dtype("complex128"))
    with pytest.raises(NotImplementedError, match="FFT not supported for complex64 by this numpy: it computes in comp"):
        spectra._require_own_fft(older, np.dtype("complex64"))


def test_other_devices_are_refused() -> None:
    with pytest.raises(UsageError, match="the workload signal runs on cuda and cpu, not on mps"):
        workload(device="mps")


@pytest.mark.gpu
@BOTH
def test_cupy_computes_what_numpy_computes(name: str) -> None:
    cupy = pytest.importorskip("cupy")
    try:
        cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        pytest.skip(f"needs an NVIDIA GPU: {error}")
    host, device = workload(name), workload(name, "cuda:0")
    batch = host.make_batch(4)
    assert device.make_batch(4).dtype == name
    for found, expected in zip(device.step(cupy.asarray(batch)), host.step(batch), strict=True):
        assert found.dtype == expected.dtype
        assert np.linalg.norm(cupy.asnumpy(found) - expected) < 1e-5 * np.linalg.norm(expected)


def test_mel_filters_reach_from_the_lowest_frequency_to_half_the_sample_rate() -> None:
    filters = spectra.mel_filters()
    used = filters.any(axis=0).nonzero()[0]
    assert used[0] == 1
    assert used[-1] >= FRAME // 2 - 1, "the last filter falls to 0 at half the sample rate, up to rounding"


def test_mel_filters_by_definition() -> None:
    """Triangles between 42 frequencies that are evenly spaced in mel, from 0 to 8 kHz."""
    highest = 2595 * math.log10(1 + 8000 / 700)
    edges = [700 * (10 ** (number * highest / 41 / 2595) - 1) for number in range(42)]
    frequencies = np.arange(257) * 31.25
    expected = [np.interp(frequencies, edges[n : n + 3], [0, 1, 0]) for n in range(40)]
    assert np.allclose(spectra.mel_filters(), expected)
