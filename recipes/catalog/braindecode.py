"""braindecode: nets that decode EEG, and the electrical activity of muscles."""

import contextlib
import io
from typing import Any

from passnet.data.capture.mismatched_wheels import import_with_torchaudio
from passnet.data.capture.net import Net, floats

ADDS = (
    "decoders of EEG and of muscles: convolutions over time and over electrodes, banks of filters, "
    "powers and covariances of bands, attention over channels"
)
PACKAGES = ("braindecode",)

BATCH = 8
TASKS = {
    "USleep": "sleep-staging", "AttnSleep": "sleep-staging", "DeepSleepNet": "sleep-staging",
    "SleepStagerBlanco2020": "sleep-staging", "SleepStagerChambon2018": "sleep-staging",
    "SignalJEPA": "feature-extraction", "MetaNeuromotorHand": "typing-from-muscles",
    "EMG2QwertyNet": "typing-from-muscles", "VEMG2Pose": "pose-from-muscles",
    "NeuroPose": "pose-from-muscles", "SensingDynamics": "pose-from-muscles",
}  # fmt: skip
"""Tasks of nets that do not classify EEG."""


def _signals() -> Any:
    """Return the module that describes the signals each net takes."""
    return import_with_torchaudio("braindecode.models.util")


def names() -> list[str]:
    """Return all nets of the library, except for mere reorderings of electrodes."""
    required = _signals().models_mandatory_parameters
    return [name for name, _, _ in required if not name.startswith("Interpolated")]


def build(name: str) -> Net:
    """Build a net with the library's sizes, on windows of the length and channels it asks for."""
    util = _signals()
    rows = {row: (required, own) for row, required, own in util.models_mandatory_parameters}
    required, own = rows[name]
    signal = util._get_signal_params(own)
    settings = {key: signal[key] for key in required}
    with contextlib.redirect_stdout(io.StringIO()):
        net = util._get_model_class(name)(**settings)
    axes = ("batch", "channel", "time")
    x = floats(BATCH, int(signal["n_chans"]), int(signal["n_times"]), axes=axes)
    return Net(net.eval(), (x,), domain="other", task=TASKS.get(name, "eeg-classification"))
