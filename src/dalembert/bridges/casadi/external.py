"""Exported C behind CasADi's C interface: what `casadi.external` loads, with its derivatives.

Beside `<name>.c` of `export_c`, the folder gets the same function's Jacobian and products as C, and one file
`<name>_casadi.c` that declares them to CasADi: `<name>_casadi`, `jac_<name>_casadi`, `fwd1_<name>_casadi`,
`adj1_<name>_casadi`, each with its sparsity, names and working memory (CasADi's "API of generated code"). Arguments
that are NULL are zero, results that are NULL are not wanted; matrices lie by columns there and by rows here.

    cc -O2 -shared -fPIC *.c -lm -o model.so            then            casadi.external("<name>_casadi", "./model.so")
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dalembert.bridges.chosen import VERDICT, smooth_outputs
from dalembert.errors import UnsupportedError
from dalembert.kernel.c.export import Export, export_c

if TYPE_CHECKING:
    from pathlib import Path

    from dalembert.kernel import Kernel
    from dalembert.kernel.program.program import Port

HEAD = """\
/* {name}_casadi.c: {name} and its derivatives for casadi.external; written by dalembert. */

#include <stddef.h>
{includes}
#ifndef casadi_int
#define casadi_int long long int
#endif
#ifndef casadi_real
#define casadi_real double
#endif
#ifndef CASADI_SYMBOL_EXPORT
#if defined(_WIN32)
#define CASADI_SYMBOL_EXPORT __declspec(dllexport)
#else
#define CASADI_SYMBOL_EXPORT
#endif
#endif
#ifdef __cplusplus
extern "C" {{
#endif

/* An argument, by rows: where it is, or in w. */
static const double *da_in(const double *x, double *w, int rows, int cols)
{{
    int i, j;
    if (x && (rows == 1 || cols == 1)) {{
        return x;
    }}
    for (i = 0; i < rows; ++i) {{
        for (j = 0; j < cols; ++j) {{
            w[i * cols + j] = x ? x[j * rows + i] : 0.0;
        }}
    }}
    return w;
}}

/* A result: from rows in w to columns. */
static void da_out(const double *w, double *x, int rows, int cols)
{{
    int i, j;
    if (x && x != w) {{
        for (i = 0; i < rows; ++i) {{
            for (j = 0; j < cols; ++j) {{
                x[j * rows + i] = w[i * cols + j];
            }}
        }}
    }}
}}
"""
FUNCTION = """
CASADI_SYMBOL_EXPORT int {symbol}(const casadi_real **arg, casadi_real **res, casadi_int *iw, casadi_real *w, int mem)
{{
{body}
    (void)iw;
    (void)mem;
    return 0;
}}

CASADI_SYMBOL_EXPORT casadi_int {symbol}_n_in(void) {{ return {n_in}; }}
CASADI_SYMBOL_EXPORT casadi_int {symbol}_n_out(void) {{ return {n_out}; }}

CASADI_SYMBOL_EXPORT const char *{symbol}_name_in(casadi_int i)
{{
    static const char *const names[] = {{{names_in}}};
    return i >= 0 && i < {n_in} ? names[i] : 0;
}}

CASADI_SYMBOL_EXPORT const char *{symbol}_name_out(casadi_int i)
{{
    static const char *const names[] = {{{names_out}}};
    return i >= 0 && i < {n_out} ? names[i] : 0;
}}

CASADI_SYMBOL_EXPORT const casadi_int *{symbol}_sparsity_in(casadi_int i)
{{
{sparsity_in}    return 0;
}}

CASADI_SYMBOL_EXPORT const casadi_int *{symbol}_sparsity_out(casadi_int i)
{{
{sparsity_out}    return 0;
}}

CASADI_SYMBOL_EXPORT int {symbol}_work(casadi_int *sz_arg, casadi_int *sz_res, casadi_int *sz_iw, casadi_int *sz_w)
{{
    if (sz_arg) *sz_arg = {n_in};
    if (sz_res) *sz_res = {n_out};
    if (sz_iw) *sz_iw = 0;
    if (sz_w) *sz_w = {work};
    return 0;
}}
"""


def write_external(kernel: Kernel, export: Export) -> Path:
    """Write the derivatives and the interface beside what `export_c` wrote; return the interface's file."""
    if kernel.options.dtype != "float64":
        raise UnsupportedError("casadi.external computes in double precision; export a kernel of dtype='float64'")
    folder, name = export.source.parent, export.name
    places = smooth_outputs(kernel, None)
    outputs = [kernel.outputs[k] for k in places]
    names = [port.name for port in outputs]
    derived = {
        "jac": kernel.jacobian(outputs=names),
        "fwd1": kernel.jvp(outputs=names),
        "adj1": kernel.vjp(outputs=names),
    }
    files = {
        kind: export_c(derivative.function, folder / f"{name}_{kind}", name=f"{name}_{kind}")
        for kind, derivative in derived.items()
    }
    for file in files.values():
        for part in (file.source, file.header):
            part.replace(folder / part.name)
        file.cmake.unlink()
        file.example.unlink()
        file.source.parent.rmdir()
    texts = [_function(f"{name}_casadi", name, kernel.inputs, (), kernel.outputs)]
    for kind, derivative in derived.items():
        n = len(kernel.inputs)
        blocks = [(o, i) for o in outputs for i in kernel.inputs] if kind == "jac" else None
        texts.append(
            _function(
                f"{kind}_{name}_casadi", f"{name}_{kind}", derivative.inputs, outputs, derivative.outputs, n, blocks
            )
        )
    includes = "\n".join(f'#include "{stem}.h"' for stem in (name, *(f"{name}_{kind}" for kind in derived)))
    target = folder / f"{name}_casadi.c"
    target.write_text(HEAD.format(name=name, includes=includes) + "".join(texts) + "\n#ifdef __cplusplus\n}\n#endif\n")
    sources = " ".join(f"{stem}.c" for stem in (name, *(f"{name}_{kind}" for kind in derived), f"{name}_casadi"))
    with export.cmake.open("a") as file:
        file.write(
            f"# What casadi.external loads.\nadd_library({name}_casadi SHARED {sources})\n"
            f"if(UNIX)\n  target_link_libraries({name}_casadi PRIVATE m)\nendif()\n"
        )
    return target


def _function(
    symbol: str,
    inner: str,
    inputs: Sequence[Port],
    unused: Sequence[Port],
    outputs: Sequence[Port],
    before: int | None = None,
    blocks: Sequence[tuple[Port, Port]] | None = None,
) -> str:
    """Return one function with its metadata.

    `unused` are arguments after the first `before` that CasADi gives to derivatives (the outputs) and nobody reads;
    `blocks` are the (output, input) pairs of a Jacobian, whose rows and columns CasADi counts by columns.
    """
    before = len(inputs) if before is None else before
    arguments = [*inputs[:before], *unused, *inputs[before:]]
    body, used, offset = [], [], 0
    for place, port in enumerate(arguments):
        if before <= place < before + len(unused):
            continue
        used.append(f"x{place}")
        body.append(f"    const double *x{place} = da_in(arg[{place}], w + {offset}, {port.rows}, {port.cols});")
        offset += port.size
    results, ends, ports = [], [], []
    for place, port in enumerate(outputs):
        results.append(f"w + {offset}")
        if port.name != VERDICT:
            ends.append(_written(len(ports), offset, port, None if blocks is None else blocks[place]))
            ports.append(port)
        offset += port.size
    body.append(f"    {inner}({', '.join(used + results)});")
    body += ends

    return FUNCTION.format(
        symbol=symbol,
        body="\n".join(body),
        n_in=len(arguments),
        n_out=len(ports),
        names_in=", ".join(f'"{name}"' for name in _names(arguments)),
        names_out=", ".join(f'"{name}"' for name in _names(ports)),
        sparsity_in="".join(_sparsity(i, port) for i, port in enumerate(arguments)),
        sparsity_out="".join(_sparsity(i, port) for i, port in enumerate(ports)),
        work=max(1, offset),
    )


def _names(ports: Sequence[Port]) -> list[str]:
    """Return distinct names."""
    names: list[str] = []
    for port in ports:
        name = port.name
        while name in names:
            name += "_"
        names.append(name)
    return names


def _written(place: int, offset: int, port: Port, block: tuple[Port, Port] | None) -> str:
    """Return the statement that hands a result over."""
    if block is None or all(side.cols == 1 for side in block):
        return f"    da_out(w + {offset}, res[{place}], {port.rows}, {port.cols});"
    o, i = block
    return (
        f"    if (res[{place}]) {{\n        int r, c;\n"
        f"        for (r = 0; r < {port.rows}; ++r) {{\n            for (c = 0; c < {port.cols}; ++c) {{\n"
        f"                const int row = r / {o.cols} + r % {o.cols} * {o.rows};\n"
        f"                const int col = c / {i.cols} + c % {i.cols} * {i.rows};\n"
        f"                res[{place}][col * {port.rows} + row] = w[{offset} + r * {port.cols} + c];\n"
        "            }\n        }\n    }"
    )


def _sparsity(place: int, port: Port) -> str:
    """Return the case of one port: a dense matrix, in CasADi's short form (rows, columns, 1)."""
    return (
        f"    if (i == {place}) {{\n        static const casadi_int s[3] = {{{port.rows}, {port.cols}, 1}};\n"
        "        return s;\n    }\n"
    )
