"""A kernel as files for use without Python: C source and header, a CMake list and an example program."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from dalembert.errors import ModelError
from dalembert.kernel.c.printer import TYPE, CSource, loop, print_c
from dalembert.kernel.program.lower import lower
from dalembert.kernel.program.program import Port

CMAKE = """\
# A library with {name}, and an example that prints its outputs. In your own project: add_subdirectory({name}), then
# target_link_libraries(<yours> {name}).
cmake_minimum_required(VERSION 3.10)
project({name} C)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
add_library({name} STATIC {name}.c)
set_target_properties({name} PROPERTIES C_STANDARD 99 C_STANDARD_REQUIRED ON POSITION_INDEPENDENT_CODE ON)
target_include_directories({name} PUBLIC ${{CMAKE_CURRENT_SOURCE_DIR}})
if(UNIX)
  target_link_libraries({name} PUBLIC m)
endif()
add_executable({name}_example main.c)
target_link_libraries({name}_example {name})
"""
EXAMPLE_STEP = 8.0  # the example's inputs are 1/8, 2/8, ...: exact in both precisions


@dataclass(frozen=True)
class Export:
    """Files that `export_c` wrote: C source, header, CMake list, example; and the name of the C function."""

    name: str
    source: Path
    header: Path
    cmake: Path
    example: Path


def export_c(function: Any, folder: str | Path, dtype: str = "float64", name: str | None = None) -> Export:
    """Write a CasADi function as C99.

    Parameters
    ----------
    folder
        Where the files go; made where it does not exist. Files of these names are overwritten.
    name
        Name of the C function and of its files; that of `function` where None.
    """
    text = print_c(lower(function), dtype, name)
    if name is not None and text.name != name:
        raise ModelError(f"{name!r} cannot name a C function: it is no identifier, or C has a use for it")
    if not isinstance(folder, str | PathLike):
        raise ModelError(f"export_c writes into a folder, not into {folder!r}")
    target = Path(folder)
    export = Export(
        text.name,
        target / f"{text.name}.c",
        target / f"{text.name}.h",
        target / "CMakeLists.txt",
        target / "main.c",
    )
    files = {
        export.source: text.source,
        export.header: text.header,
        export.cmake: CMAKE.format(name=text.name),
        export.example: _example(text, function, dtype),
    }
    try:
        target.mkdir(parents=True, exist_ok=True)
        for file, content in files.items():
            file.write_text(content)
    except (OSError, ValueError) as error:
        raise ModelError(f"export_c cannot write into the folder {str(target)!r}: {error}") from error
    return export


def _example(text: CSource, function: Any, dtype: str) -> str:
    """Return a program that calls the function once, on inputs 1/8, 2/8, ..., and prints every output element."""
    from dalembert.kernel.program.columns import ports_of

    real = TYPE[dtype]
    inputs, outputs = ports_of(function)

    def declare(name: str, port: Port) -> str:
        return f"    static {real} {name}[{max(1, port.size)}];"

    names = [*text.inputs, *text.outputs]
    lines = [
        f"/* Example: call {text.name} once, on inputs 1/8, 2/8, 3/8, ..., and print what comes out. */\n",
        f'#include <stdio.h>\n\n#include "{text.name}.h"\n',
        "int main(void)\n{",
        *[declare(x, port) for x, port in zip(names, inputs + outputs, strict=True)],
        "    int element, bad;" if any(port.size for port in inputs + outputs) else "    int bad;",
    ]
    for x, port in zip(text.inputs, inputs, strict=True):
        if port.size:
            value = f"({real})(element + 1) / {EXAMPLE_STEP}{'f' if dtype == 'float32' else ''}"
            lines.append(loop(port, f"{x}[element] = {value};"))
    lines.append(f"    bad = {text.name}({', '.join(names)});")
    digits = 17 if dtype == "float64" else 9
    for x, port in zip(text.outputs, outputs, strict=True):
        if port.size:
            call = f'printf("{x}[%d] = %.{digits}g\\n", element, (double){x}[element]);'
            lines.append(loop(port, call))
    return "\n".join([*lines, "    return bad;\n}\n"])
