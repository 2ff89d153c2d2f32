"""A corpus of hostile files: what each is called, what it holds, and what must be said about it.

The words are a regular expression for the refusal; None means that the file is harmless and must load. Files outside
the model's folder hold a body called "secret", so that whoever opens them is found out.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROBOT = '<robot name="r"><link name="a"/></robot>'
SECRET_SDF = '<sdf version="1.9"><model name="m"><link name="secret"/></model></sdf>'
SECRET_MJCF = '<mujocoinclude><body name="secret"><geom size="1"/></body></mujocoinclude>'


MANY = " ".join(f'a{i}="1"' for i in range(49_999)) + ' b="2"'
"""Attributes; with the name they are one more."""


@dataclass(frozen=True)
class Hostile:
    """One case: the file's name, its content or what makes it, and the words of the refusal."""

    file: str
    content: str | bytes | Callable[[Path], None]
    words: str | None


def urdf(inside: str, words: str | None) -> Hostile:
    return Hostile("r.urdf", f'<robot name="r">{inside}</robot>', words)


def sdf(inside: str, words: str | None, version: str = "1.9") -> Hostile:
    return Hostile("m.sdf", f'<sdf version="{version}"><model name="m">{inside}</model></sdf>', words)


def mjcf(inside: str, words: str | None) -> Hostile:
    return Hostile("m.xml", f"<mujoco>{inside}</mujoco>", words)


def with_files(file: str, text: str, words: str | None, **others: str) -> Hostile:
    """Return a case with files beside the model; names with "outside" go to the folder above."""

    def make(path: Path) -> None:
        path.write_text(text)
        for name, content in others.items():
            folder = path.parent.parent if name.startswith("outside") else path.parent
            (folder / name.replace("__", ".")).write_text(content)

    return Hostile(file, make, words)


def linked(file: str, text: str, words: str | None, target: str) -> Hostile:
    """Return a case with a link "inside.<ext>" in the model's folder that leads out of it."""

    def make(path: Path) -> None:
        path.write_text(text)
        outside = path.parent.parent / f"outside{path.suffix}"
        outside.write_text(target)
        (path.parent / f"inside{path.suffix}").symlink_to(outside)

    return Hostile(file, make, words)


def laughs(levels: int = 30) -> str:
    entities = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10 if i else "ha"}">' for i in range(levels))
    return f'<!DOCTYPE robot [{entities}]><robot name="&l{levels - 1};"/>'


def _sparse(path: Path) -> None:
    with path.open("wb") as stream:
        stream.write(ROBOT.encode())
        stream.truncate(100 * 10**6)


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _folder(path: Path) -> None:
    path.mkdir()


def _nothing(path: Path) -> None:
    del path


def _chain(n: int, cycle: bool) -> str:
    links = "".join(f'<link name="l{i}"/>' for i in range(n))
    ends = [(i - 1 if i else n - 1, i) for i in range(0 if cycle else 1, n)]
    return links + "".join(
        f'<joint name="j{i}" type="fixed"><parent link="l{p}"/><child link="l{i}"/></joint>' for p, i in ends
    )


def _doubling(path: Path) -> None:
    """Write files that include the next one twice each: 2^30 models."""
    include = "<include><uri>{0}</uri><name>{1}</name></include>"
    names = [path, *(path.parent / f"f{i}.sdf" for i in range(30))]
    for own, following in zip(names, [*names[1:], None], strict=True):
        inside = "" if following is None else "".join(include.format(following.name, side) for side in "ab")
        own.write_text(f'<sdf version="1.9"><model name="m"><link name="l"/>{inside}</model></sdf>')


INCLUDE = "<include><uri>{}</uri></include>"
LINK = '<link name="a"/>'
PAIR = LINK + '<link name="b"/><joint name="j" type="revolute"><parent link="a"/><child link="b"/>{}</joint>'
BODY = '<worldbody><body name="b"><joint name="j"/><geom size="1"/>{}</body></worldbody>'
GRID = '<asset><hfield name="h" nrow="100000" ncol="100000" size="1 1 1 1"/></asset>'

CORPUS: dict[str, Hostile] = {
    # XML
    "billion laughs": Hostile("r.urdf", laughs(), "document type|entity"),
    "quadratic blow-up": Hostile(
        "r.urdf", f'<!DOCTYPE r [<!ENTITY a "{"x" * 10**5}">]><robot name="{"&a;" * 10**4}"/>', "document type|entity"
    ),
    "external entity": Hostile(
        "r.urdf", '<!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/passwd">]><robot name="&x;"/>', "document type|entity"
    ),
    "parameter entity": Hostile(
        "r.urdf", '<!DOCTYPE r [<!ENTITY % x SYSTEM "http://a.b/c"> %x;]><robot name="r"/>', "document type|entity"
    ),
    "external document type": Hostile("r.urdf", f'<!DOCTYPE robot SYSTEM "http://a.b/c.dtd">{ROBOT}', "document type"),
    "public document type": Hostile("r.urdf", f'<!DOCTYPE robot PUBLIC "a" "b.dtd">{ROBOT}', "document type"),
    "default attributes": Hostile(
        "r.urdf", f'<!DOCTYPE robot [<!ATTLIST link name CDATA "x">]>{ROBOT}', "document type"
    ),
    "bare document type": Hostile("r.urdf", f"<!DOCTYPE robot>{ROBOT}", None),
    "unknown entity": Hostile("r.urdf", '<robot name="&nothing;"/>', "undefined entity"),
    "entity bomb in SDF": Hostile("m.sdf", laughs(), "document type|entity"),
    "entity bomb in MJCF": Hostile("m.xml", laughs(), "document type|entity"),
    "100 MB": Hostile("r.urdf", _sparse, "95 MiB is above the limit of 64 MiB"),
    "empty": Hostile("r.urdf", "", "no element found"),
    "blank": Hostile("r.urdf", " \n\t ", "no element found"),
    "bytes": Hostile("r.urdf", bytes(range(256)) * 100, "not well-formed"),
    "zeros": Hostile("r.urdf", bytes(10**6), "not well-formed"),
    "truncated": Hostile("r.urdf", ROBOT[:-10], "not well-formed"),
    "crossed tags": Hostile("r.urdf", '<robot name="r"><link name="a"></robot></link>', "mismatched tag"),
    "two roots of XML": Hostile("r.urdf", ROBOT + ROBOT, "junk after document"),
    "attribute twice": Hostile("r.urdf", '<robot name="r" name="s"/>', "duplicate attribute"),
    "many attributes": Hostile(
        "r.urdf",
        f'<robot name="r" {" ".join(f"a{i}=" + chr(34) * 2 for i in range(10**5))}>{LINK}</robot>',
        "100001 attributes; the limit is 200",
    ),
    "unknown encoding": Hostile(
        "r.urdf", f'<?xml version="1.0" encoding="klingon"?>{ROBOT}', "cannot be decoded|encoding"
    ),
    "utf-7": Hostile("r.urdf", f'<?xml version="1.0" encoding="utf-7"?>{ROBOT}', "cannot be decoded|encoding"),
    "broken utf-8": Hostile("r.urdf", b'<robot name="\xff\xfe\xfd"/>', "not well-formed"),
    "control characters": Hostile("r.urdf", '<robot name="\x01\x02"/>', "not well-formed"),
    "gzip": Hostile("r.urdf", gzip.compress(ROBOT.encode()), "not well-formed"),
    "deep nesting": Hostile("r.urdf", "<robot>" + "<a>" * 10**5, "nested 201 deep"),
    "deep models": Hostile(
        "m.sdf", '<sdf version="1.9">' + "".join(f'<model name="m{i}">' for i in range(10**4)), "nested 201 deep"
    ),
    "huge tag": Hostile("r.urdf", f'<robot name="r"><{"a" * 10**6}/></robot>', "a tag or name of 1000000 characters"),
    "huge name": urdf(f'<link name="{"a" * 10**6}"/>', "a tag or name of 1000000 characters"),
    "huge reference": urdf(
        LINK + f'<joint name="j" type="fixed"><parent link="{"a" * 10**6}"/><child link="a"/></joint>', "no body"
    ),
    "inclusion of XML": urdf(LINK + '<xi:include href="/etc/passwd" parse="text"/>', None),
    "folder": Hostile("r.urdf", _folder, "cannot be read|not a file"),
    "pipe": Hostile("r.urdf", _pipe, "not a file"),
    "device": Hostile("r.urdf", _device, "not a file"),
    "no file": Hostile("r.urdf", _nothing, "No such file"),
    "another format": Hostile("r.urdf", "<html><body/></html>", "files that begin with <html>"),
    # numbers and names
    "long number": urdf(PAIR.format(f'<origin xyz="{"1" * 10**5} 0 0"/>'), "beyond any machine"),
    "long exponent": urdf(PAIR.format(f'<origin xyz="1e{"9" * 10**4} 0 0"/>'), "beyond any machine"),
    "many numbers": urdf(PAIR.format(f'<origin xyz="{"0 " * 10**5}"/>'), "needs 3 numbers, not 100000"),
    "not a number": urdf(PAIR.format('<axis xyz="nan nan nan"/>'), "is not a number"),
    "infinite": urdf(PAIR.format('<axis xyz="inf 0 0"/>'), "infinite"),
    "code": urdf(PAIR.format("<axis xyz=\"__import__('os').getpid() 0 0\"/>"), "is not a number"),
    "huge inertia": urdf(
        '<link name="a"><inertial><mass value="1e308"/><inertia ixx="1e308" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/>'
        "</inertial></link>",
        "beyond any machine",
    ),
    "escape codes in a name": urdf('<link name="&#27;[31ma"/>', "not well-formed"),
    "cycle of 1000": urdf(_chain(1000, cycle=True), "cycle"),
    "chain of 1000": urdf(_chain(1000, cycle=False), None),
    "1000 times one name": urdf(LINK * 10**3, "is there already|one root"),
    "mimic in a circle": urdf(
        PAIR.format('<limit lower="0" upper="1" effort="1" velocity="1"/><mimic joint="k"/>')
        + '<link name="c"/><joint name="k" type="continuous"><parent link="b"/><child link="c"/>'
        '<mimic joint="j"/></joint>',
        None,
    ),
    # folders
    "mesh outside": urdf(
        '<link name="a"><visual><geometry><mesh filename="../../../etc/passwd"/></geometry></visual></link>', None
    ),
    "mesh of another machine": urdf(
        '<link name="a"><visual><geometry><mesh filename="http://a.b/c.stl"/></geometry></visual></link>', None
    ),
    "endless path": urdf(
        f'<link name="a"><visual><geometry><mesh filename="{"a/" * 10**5}"/></geometry></visual></link>', None
    ),
    "include above": with_files(
        "m.sdf",
        f'<sdf version="1.9"><model name="m">{INCLUDE.format("../outside.sdf")}</model></sdf>',
        "not found",
        outside__sdf=SECRET_SDF,
    ),
    "include above, in disguise": with_files(
        "m.sdf",
        f'<sdf version="1.9"><model name="m">{INCLUDE.format("%2e%2e/outside.sdf")}</model></sdf>',
        "not found",
        outside__sdf=SECRET_SDF,
    ),
    "include by address": sdf(INCLUDE.format("file:///etc/passwd"), "not found"),
    "include from the net": sdf(INCLUDE.format("https://a.b/c.sdf"), "not found"),
    "include of nothing": sdf("<include/>", "<uri> is missing"),
    "include by a link": linked(
        "m.sdf",
        f'<sdf version="1.9"><model name="m">{INCLUDE.format("inside.sdf")}</model></sdf>',
        "not found",
        SECRET_SDF,
    ),
    "include of itself": sdf(INCLUDE.format("m.sdf"), "includes itself|too many"),
    "2^30 includes": Hostile("m.sdf", _doubling, "too many files"),
    # SDF
    "circle of poses": sdf(
        '<link name="a"><pose relative_to="b"/></link><link name="b"><pose relative_to="a"/></link>', "in a circle"
    ),
    "long chain of poses": sdf(
        '<link name="l0"/>'
        + "".join(f'<link name="l{i}"><pose relative_to="l{i - 1}"/></link>' for i in range(1, 500)),
        None,
    ),
    "circle of attachments": sdf(
        LINK + '<frame name="f" attached_to="g"/><frame name="g" attached_to="f"/>', "in a circle"
    ),
    "placement frame in a circle": sdf(
        LINK + '<model name="n" placement_frame="f"><link name="c"/><frame name="f" attached_to="f"/></model>',
        "in a circle",
    ),
    # MJCF
    "MJCF include above": with_files(
        "m.xml",
        '<mujoco><worldbody><include file="../outside.xml"/></worldbody></mujoco>',
        "not found",
        outside__xml=SECRET_MJCF,
    ),
    "MJCF include by a link": linked(
        "m.xml", '<mujoco><worldbody><include file="inside.xml"/></worldbody></mujoco>', "not found", SECRET_MJCF
    ),
    "MJCF include of itself": mjcf('<include file="m.xml"/>', "included already"),
    "replicated beyond measure": mjcf(
        '<worldbody><replicate count="9999"><replicate count="9999"><body><geom size="1"/></body></replicate>'
        "</replicate></worldbody>",
        "more than .* elements",
    ),
    "replicated minus once": mjcf(
        '<worldbody><replicate count="-1"><body/></replicate></worldbody>', "not a number from"
    ),
    "huge height field": mjcf(GRID + BODY.format('<geom type="hfield" hfield="h"/>'), None),
    "huge texture": mjcf(
        '<asset><texture name="t" type="2d" builtin="flat" width="1000000" height="1000000"/></asset>'
        + BODY.format(""),
        None,
    ),
    "huge memory": mjcf('<size memory="900T"/>' + BODY.format(""), None),
    "NaN in MJCF": mjcf(
        BODY.format('<inertial pos="nan 0 0" mass="1" diaginertia="1 1 1"/>'), "<inertial>: pos = .* is not a number"
    ),
    "infinite mass": mjcf(
        BODY.format('<inertial pos="0 0 0" mass="1e300" diaginertia="1 1 1"/>'), "m.xml.*1e60|MuJoCo says"
    ),
    "massless in MJCF": mjcf("<worldbody><body><joint/></body></worldbody>", "MuJoCo says"),
    "mesh outside in MJCF": mjcf(
        '<asset><mesh name="s" file="/etc/passwd.stl"/></asset>' + BODY.format('<geom type="mesh" mesh="s"/>'),
        "was not found",
    ),
    "plugin": mjcf(
        '<extension><plugin plugin="evil"/></extension>' + BODY.format('<plugin plugin="evil"/>'), "plugin 'evil'"
    ),
    "soft body": mjcf('<worldbody><flexcomp name="f" type="grid" count="9999 9999 9999"/></worldbody>', "soft bodies"),
    "muscles": mjcf(
        BODY.format("")
        + '<actuator><muscle name="m" joint="j"/></actuator><compiler><lengthrange inttotal="1e9"/></compiler>',
        None,
    ),
    "many attributes in MJCF": mjcf(BODY.format("") + f"<size {MANY}/>", "50000 attributes"),
    "many attributes of a link": urdf(f'<link name="a" {MANY}/>', "50001 attributes; the limit is 200"),
    "many attributes in SDF": sdf(f'<link name="a" {MANY}/>', "50001 attributes"),
    "nothing in MJCF": mjcf("", "no <body>"),
}
