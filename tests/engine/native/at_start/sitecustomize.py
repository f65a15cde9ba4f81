"""Python runs this as it starts, where this folder is on its path: engine._native is the module SANITISED_NATIVE names.

That holds for the processes that a test starts as well. Imports nothing but the standard library.
"""

import ctypes
import os
import sys
from importlib.util import module_from_spec, spec_from_file_location

path = os.environ["SANITISED_NATIVE"]
spec = spec_from_file_location("engine._native", path)
sys.modules[spec.name] = module_from_spec(spec)
spec.loader.exec_module(sys.modules[spec.name])
ctypes.c_int.in_dll(ctypes.CDLL(path), "planted_fault").value = int(os.environ["PLANTED_FAULT"])
