"""The NumPy backend as an engine: checked arrays in, the plain twin's arrays out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dalembert.kernel.arrays import check_inputs, make_outputs
from dalembert.kernel.engine import Options
from dalembert.kernel.lower import lower
from dalembert.kernel.numpy_backend import evaluate
from dalembert.kernel.source import Source


class NumpyEngine:
    """Evaluates a program with NumPy, one line per operation."""

    short = None

    def __init__(self, function: Any, options: Options) -> None:
        lowering = lower(function)
        self.program = lowering.program
        self.name = self.program.name
        self.inputs, self.outputs = self.program.inputs, self.program.outputs
        self.dtype = np.dtype(options.dtype)
        self.figures: dict[str, Any] = {
            "operations": self.program.count(),
            "traced_operations": lowering.traced,
            "live_before": lowering.live_before,
            "live_after": lowering.live_after,
            "lower_seconds": lowering.seconds,
        }

    def call(self, inputs: Sequence[Any], out: Any, with_status: bool) -> tuple[list[Any], Any]:
        """Evaluate a batch or a single sample."""
        arguments = check_inputs(self.name, inputs, self.inputs, self.dtype)
        outputs = make_outputs(self.name, arguments, self.outputs, self.dtype, out)
        n = arguments.samples
        rows = [
            array.reshape(len(array) if arguments.is_batch(k, port) else 1, port.size)
            for k, (array, port) in enumerate(zip(arguments.inputs, self.inputs, strict=True))
        ]
        values = [np.broadcast_to(x, (n, x.shape[1])) for x in evaluate(self.program, rows, self.dtype.type)]
        for target, value in zip(outputs, values, strict=True):
            target[...] = value.reshape(target.shape)
        finite = np.all([np.isfinite(x).all(axis=1) for x in values], axis=0) if values else np.ones(n, bool)
        return outputs, (~finite).astype(np.uint8) if with_status else None

    def elapsed(self) -> float | None:
        """Return None: a call returns when it is done."""
        return None

    def peak(self) -> float | None:
        """Return None: the arithmetic of NumPy's loops is not the limit here."""
        return None


def engine(source: Source, options: Options) -> NumpyEngine:
    """Return the engine of a source."""
    return NumpyEngine(source.function, options)
