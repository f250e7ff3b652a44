"""Fills in the expected results of the cases in this directory: what XLA:CPU computes.

    python expect.py FILE.hlo...        (needs jaxlib and numpy)

A file holds small HLO modules, each followed by `// => LITERAL` for every array of its result.
Constants of the entry computation become parameters, so that nothing is folded when compiling.
"""

import re
import sys

import jax
import ml_dtypes
import numpy as np
from jax.extend import backend
from jaxlib import _hlo, _jax

TYPES = {
    "pred": np.bool_, "s8": np.int8, "s16": np.int16, "s32": np.int32, "s64": np.int64,
    "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64,
    "s4": ml_dtypes.int4, "u4": ml_dtypes.uint4, "s2": ml_dtypes.int2, "u2": ml_dtypes.uint2,
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64,
    "c64": np.complex64, "c128": np.complex128,
    "f8e5m2": ml_dtypes.float8_e5m2, "f8e4m3fn": ml_dtypes.float8_e4m3fn,
    "f8e4m3": ml_dtypes.float8_e4m3, "f8e3m4": ml_dtypes.float8_e3m4,
    "f8e4m3b11fnuz": ml_dtypes.float8_e4m3b11fnuz, "f8e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
    "f8e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
}
CONSTANT = re.compile(r"^(\s*)(%?[\w.-]+) = (\w+)\[([\d,]*)\](\S*) constant\((.*)\)$")


def number(word, dtype):
    if word in ("true", "false"):
        return word == "true"
    if np.dtype(dtype).kind in "iu" or dtype in (ml_dtypes.int4, ml_dtypes.uint4, ml_dtypes.int2, ml_dtypes.uint2):
        return int(word)
    return float(word)


def read(text, dtype, dims):
    if np.dtype(dtype).kind == "c":
        pairs = re.findall(r"\(([^,]*),([^)]*)\)", text)
        values = [complex(float(a), float(b)) for a, b in pairs]
    else:
        values = [number(w, dtype) for w in re.findall(r"[^\s{},]+", text)]
    return np.array(values, dtype=dtype).reshape(dims)


def show(x):
    if x.ndim:
        return "{" + ", ".join(show(y) for y in x) + "}"
    if x.dtype.kind == "c":
        return f"({show(x.real)}, {show(x.imag)})"
    if x.dtype == np.bool_:
        return "true" if x else "false"
    if x.dtype.kind in "iu" or "int" in str(x.dtype):
        return str(int(x))
    if x.dtype == np.float32:
        return str(x).replace("e+", "e")
    return repr(float(x))


def run(module):
    lines, args, entry = [], [], False
    for line in module.splitlines():
        entry = entry or line.startswith("ENTRY")
        m = CONSTANT.match(line) if entry else None
        if m:
            indent, name, ty, dims, layout, literal = m.groups()
            shape = [int(d) for d in dims.split(",") if d]
            args.append(read(literal, TYPES[ty], shape))
            line = f"{indent}{name} = {ty}[{dims}]{layout} parameter({len(args) - 1})"
        lines.append(line)
    proto = _hlo.hlo_module_from_text("\n".join(lines)).as_serialized_hlo_module_proto()
    mlir = _jax.mlir.xla_computation_to_mlir_module(_hlo.XlaComputation(proto))
    client = backend.get_backend("cpu")
    options = _jax.CompileOptions()
    executable = client.compile_and_load(mlir, _jax.DeviceList((client.devices()[0],)), options)
    results = executable.execute_sharded([jax.device_put(a) for a in args])
    return [np.asarray(r[0]) for r in results.disassemble_into_single_device_arrays()]


def main():
    jax.config.update("jax_enable_x64", True)
    for path in sys.argv[1:]:
        with open(path) as f:
            head, *modules = re.split(r"(?m)^(?=HloModule )", f.read())
        out = head
        for module in modules:
            kept = [l for l in module.rstrip().splitlines() if not l.startswith("// =>")]
            note = [l for l in kept if l.startswith("//")]
            body = [l for l in kept if not l.startswith("//")]
            text = "\n".join(body).rstrip()
            if "// by hand" in note:
                out += module.rstrip() + "\n\n"
                continue
            print(path, body[0])
            try:
                results = run(text)
            except Exception as error:
                print("FAILED", str(error)[:600])
                out += "\n".join([text, *note]) + "\n\n"
                continue
            expected = ["// => " + show(r) for r in results]
            out += "\n".join([text, *note, *expected]) + "\n\n"
        with open(path, "w") as f:
            f.write(out.rstrip() + "\n")


main()
