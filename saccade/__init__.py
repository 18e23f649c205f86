"""saccade: train, run and look inside attention models, any X to any Y.

Names are imported when they are first used, so that `saccade --help` needs no torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from saccade.attend.algebra import Mask as Mask
    from saccade.attend.algebra import everyone as everyone
    from saccade.attend.cache import Cache as Cache
    from saccade.attend.function import attention as attention
    from saccade.attend.function import weights as weights
    from saccade.attend.layer import Attention as Attention
    from saccade.attend.mask import causal as causal
    from saccade.attend.mask import document as document
    from saccade.attend.mask import order as order
    from saccade.attend.mask import padding as padding
    from saccade.attend.mask import prefix as prefix
    from saccade.attend.mask import window as window
    from saccade.attend.neighbours import neighbours as neighbours
    from saccade.attend.sparse import bigbird as bigbird
    from saccade.attend.sparse import blocks as blocks
    from saccade.attend.sparse import dilated as dilated
    from saccade.attend.sparse import windows as windows
    from saccade.config import ModelConfig as ModelConfig
    from saccade.decode.generate import generate as generate
    from saccade.decode.generate import stream as stream
    from saccade.decode.quantise import quantise as quantise
    from saccade.decode.scheduler import Scheduler as Scheduler
    from saccade.decode.sequence import Sequence as Sequence
    from saccade.error import SaccadeError as SaccadeError
    from saccade.error import SaccadeWarning as SaccadeWarning
    from saccade.learn.loop import Stopped as Stopped
    from saccade.learn.train import train as train
    from saccade.learn.validate import evaluate as evaluate
    from saccade.look.watch import watch as watch
    from saccade.model.input import Input as Input
    from saccade.model.model import Model as Model
    from saccade.recipe import Recipe as Recipe
    from saccade.store.export import export as export
    from saccade.store.load import load as load
    from saccade.store.run import Run as Run
    from saccade.zoo.build import build as build

__version__ = "0.1.0"

_HOMES = {
    "saccade.attend.algebra": ("Mask", "everyone"),
    "saccade.attend.cache": ("Cache",),
    "saccade.attend.function": ("attention", "weights"),
    "saccade.attend.layer": ("Attention",),
    "saccade.attend.mask": ("causal", "document", "order", "padding", "prefix", "window"),
    "saccade.attend.neighbours": ("neighbours",),
    "saccade.attend.sparse": ("bigbird", "blocks", "dilated", "windows"),
    "saccade.config": ("ModelConfig",),
    "saccade.decode.generate": ("generate", "stream"),
    "saccade.decode.quantise": ("quantise",),
    "saccade.decode.scheduler": ("Scheduler",),
    "saccade.decode.sequence": ("Sequence",),
    "saccade.error": ("SaccadeError", "SaccadeWarning"),
    "saccade.learn.loop": ("Stopped",),
    "saccade.learn.train": ("train",),
    "saccade.learn.validate": ("evaluate",),
    "saccade.look.watch": ("watch",),
    "saccade.model.input": ("Input",),
    "saccade.model.model": ("Model",),
    "saccade.recipe": ("Recipe",),
    "saccade.store.export": ("export",),
    "saccade.store.load": ("load",),
    "saccade.store.run": ("Run",),
    "saccade.zoo.build": ("build",),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'saccade' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
