"""Workload "signal": what radio and audio programs compute of complex (IQ) signals, in CuPy or, on the CPU, in NumPy.

A signal has 4096 samples: a few tones, a chirp or QPSK symbols, and noise. One step computes of each signal

    the power spectrum            FFT over the whole signal
    the spectrogram               15 frames of 512 samples, half overlapping, Hann window, FFT of each
    the autocorrelation           by FFT of twice the length, so that it does not wrap around
    cepstral features (MFCC)      of each frame: 40 mel filters over its positive frequencies, logarithm, 13 of a DCT

Everything is computed in the precision's own complex type and the real type of the same width, from the first array to
the last. NumPy before 2.0 computes every FFT in complex128 and so cannot measure complex64: it is refused.
"""

from typing import Any

import numpy

from gpudoctor.errors import UsageError
from gpudoctor.tuning.workers.precision import Precision

SAMPLES = 4096
FRAME, HOP = 512, 256
MELS, FEATURES = 40, 13
SAMPLE_RATE_HZ = 16_000
"""Of the mel scale only: with it every filter contains a frequency of the frame's spectrum."""

KINDS = 16
"""Different signals in the bank that a batch is drawn from."""

NOISE = 0.3
"""Standard deviation of its real and of its imaginary part; a signal without it has a power of 1."""

FLOOR = 1e-10
"""Added to a power before its logarithm; float32 can represent it."""

SEED = 20260


class Spectra:
    """The workload. Two of the same precision make the same batches, one after the other."""

    unit = "signals"

    def __init__(self, device: str, precision: Precision) -> None:
        self._arrays = _array_module(device)
        self._dtype = numpy.dtype(precision.name)
        self._real = numpy.empty(0, self._dtype).real.dtype
        _require_own_fft(self._arrays, self._dtype)
        self._random = self._arrays.random.default_rng(SEED)
        self._bank = self._constant(signal_bank(), self._dtype)
        hann_window = 0.5 - 0.5 * numpy.cos(2 * numpy.pi * numpy.arange(FRAME) / FRAME)  # periodic
        self._window = self._constant(hann_window, self._real)
        self._filters = self._constant(mel_filters().T, self._real)
        self._cosines = self._constant(cosine_transform().T, self._real)
        starts = HOP * numpy.arange((SAMPLES - FRAME) // HOP + 1)
        self._frames = self._arrays.asarray(starts[:, None] + numpy.arange(FRAME))

    def make_batch(self, size: int) -> Any:
        """Return `size` noisy signals, shape (size, 4096), of the precision's type.

        The noise is drawn in float32 for both precisions, so that they get the same signals.
        """
        noise = self._random.standard_normal((size, 2 * SAMPLES), dtype=numpy.float32)
        noise *= numpy.float32(NOISE)
        signals = noise.astype(self._real, copy=False).view(self._dtype)
        signals += self._bank[self._random.integers(0, KINDS, size=size)]
        return signals

    def step(self, batch: Any) -> tuple[Any, Any, Any, Any]:
        """Return power spectrum, spectrogram, autocorrelation and cepstral features of the signals."""
        frames = self.spectrogram(batch)
        return self.spectrum(batch), frames, self.autocorrelation(batch), self.cepstrum(frames)

    def spectrum(self, signals: Any) -> Any:
        """Return the power at each frequency, shape (size, 4096); its sum is the signal's energy."""
        return _power(self._arrays.fft.fft(signals)) / SAMPLES

    def spectrogram(self, signals: Any) -> Any:
        """Return the power of each frame at each frequency, shape (size, 15, 512)."""
        return _power(self._arrays.fft.fft(signals[:, self._frames] * self._window)) / FRAME

    def autocorrelation(self, signals: Any) -> Any:
        """Return sum of x[n + lag] * conj(x[n]) over n, divided by 4096, for each lag: shape (size, 4096), complex."""
        power = _power(self._arrays.fft.fft(signals, n=2 * SAMPLES))
        return self._arrays.fft.ifft(power.astype(self._dtype))[:, :SAMPLES] / SAMPLES

    def cepstrum(self, frames: Any) -> Any:
        """Return the features of each frame of a spectrogram, shape (size, 15, 13)."""
        energies = frames[..., : FRAME // 2 + 1] @ self._filters
        return self._arrays.log(energies + FLOOR) @ self._cosines

    def _constant(self, values: Any, dtype: Any) -> Any:
        return self._arrays.asarray(values.astype(dtype))


def signal_bank() -> Any:
    """Return the signals without noise, shape (16, 4096), complex128.

    Eight have three tones each, four are chirps, four have QPSK symbols of eight samples.
    """
    random = numpy.random.default_rng(SEED)
    time = numpy.arange(SAMPLES)
    frequencies = random.uniform(-0.5, 0.5, (8, 3, 1))
    tones = numpy.exp(2j * numpy.pi * frequencies * time).sum(axis=1) / 3**0.5
    sweeps = random.uniform(0.1, 0.5, (4, 1))
    chirps = numpy.exp(1j * numpy.pi * sweeps * time**2 / SAMPLES)
    symbols = random.integers(0, 4, (4, SAMPLES // 8)).repeat(8, axis=1)
    return numpy.concatenate([tones, chirps, numpy.exp(0.5j * numpy.pi * (symbols + 0.5))])


def mel_filters() -> Any:
    """Return triangular filters, evenly spaced on the mel scale, shape (40, 257).

    Each rises to 1 from the peak of the one before and falls to that of the next: between the first peak and the last
    they add up to 1. mel = 2595 log10(1 + f / 700 Hz), as in HTK.
    """
    highest_mel = 2595 * numpy.log10(1 + SAMPLE_RATE_HZ / 2 / 700)
    edges = 700 * (10 ** (numpy.linspace(0, highest_mel, MELS + 2) / 2595) - 1)
    low, peak, high = edges[:-2, None], edges[1:-1, None], edges[2:, None]
    frequencies = numpy.arange(FRAME // 2 + 1) * SAMPLE_RATE_HZ / FRAME
    rising, falling = (frequencies - low) / (peak - low), (high - frequencies) / (high - peak)
    return numpy.clip(numpy.minimum(rising, falling), 0, None)


def cosine_transform() -> Any:
    """Return the first 13 rows of the orthonormal DCT-II of 40 values, shape (13, 40)."""
    row, column = numpy.arange(FEATURES)[:, None], numpy.arange(MELS)
    matrix = numpy.cos(numpy.pi * row * (2 * column + 1) / (2 * MELS)) * (2 / MELS) ** 0.5
    matrix[0] /= 2**0.5
    return matrix


def _power(values: Any) -> Any:
    return values.real**2 + values.imag**2


def _array_module(device: str) -> Any:
    """Return CuPy, with the device made the current one, or NumPy.

    Raises:
        UsageError: neither computes on this device.
    """
    kind, _, index = device.partition(":")
    if kind == "cpu":
        return numpy
    if kind != "cuda":
        raise UsageError(f"the workload signal runs on cuda and cpu, not on {kind}")
    import cupy

    cupy.cuda.Device(int(index or 0)).use()
    return cupy


def _require_own_fft(arrays: Any, dtype: Any) -> None:
    """Refuse a type that the FFT silently widens, as NumPy before 2.0 does complex64. CuPy keeps it.

    Raises:
        NotImplementedError: in words that are taken for "not supported here".
    """
    computed = arrays.fft.fft(arrays.zeros(2, dtype)).dtype
    if computed != dtype:
        raise NotImplementedError(f"FFT not supported for {dtype} by this {arrays.__name__}: it computes in {computed}")
