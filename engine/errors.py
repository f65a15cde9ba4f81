"""What the engine raises. Imports nothing.

Each class is also the built-in that a caller would expect, so ``except ValueError`` keeps working.
"""


class EngineError(Exception):
    """Base of everything the engine raises on purpose."""


class DataError(EngineError, ValueError):
    """The data cannot be used; the message names the column or row, the limit and the remedy."""


class ParamError(EngineError, ValueError):
    """A parameter is unknown or out of range."""


class ModelError(EngineError, ValueError):
    """A model file or tree is damaged, inconsistent or of an unknown version."""


class DeviceUnavailableError(EngineError, RuntimeError):
    """The device asked for is not here. There is no fallback."""


class DeviceMemoryError(EngineError, MemoryError):
    """The device has not enough memory; the message says what was needed, what was free and which knob lowers it."""


class SessionError(EngineError, RuntimeError):
    """A training session was used out of order or after it failed."""
