"""The smallest training on sounds: tones of three heights, and the word for each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from own import recordings

from saccade import Recipe
from saccade.recipes.read import from_values


def recipe(folder: Path, **tables: Any) -> Recipe:
    """A transcriber that listens, attends and spells, of a table that names sounds."""
    if not (folder / "recordings.csv").exists():
        recordings(folder)
    values: dict[str, Any] = {
        "task": "transcribe",
        "data": {"files": [str(folder / "recordings.csv")], "share": 0.2},
        "x": {
            "source": {
                "kind": "sound",
                "bands": 13,
                "embed": "pyramid(1)",
                "augment": "speed(0.9, 1.1) noise(20, 40) mask_time(5)",
            }
        },
        "y": {"tokenizer": "characters", "vocab": 40, "ctc": 0.3, "metrics": ["wer", "cer", "exact_match"]},
        "model": {
            "width": 16,
            "heads": 1,
            "encoder": 1,
            "decoder": 1,
            "mixer": "gru",
            "encoder_mixer": "lstm(both=True)",
        }
        | {"cross": "feeding", "order": "plain", "feed": "none", "dropout": 0.1},
        "train": {"steps": 8, "batch": 300, "every": 4, "rate": 1e-2},
        "decode": {"max_tokens": 8},
    }
    for name, table in tables.items():
        values[name] = {**values.get(name, {}), **table}
    return from_values(values)
