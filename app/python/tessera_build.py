"""Builds the module's wheel (PEP 517) with nothing but Python itself: the module is a few
text files, so `pip install` needs neither a network nor a compiler."""
import base64
import hashlib
import io
import os
import re
import tarfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = "tessera"
SUMMARY = "Radio-interferometric gridding and imaging: the tessera library from Python"


def _read(*parts):
    with open(os.path.join(HERE, *parts), encoding="utf-8") as file:
        return file.read()


def _version():
    return re.search(r'^VERSION = "(.+)"', _read(PACKAGE, "_version.py"), re.M).group(1)


def _sources():
    return sorted(f for f in os.listdir(os.path.join(HERE, PACKAGE)) if f.endswith(".py"))


def _metadata():
    return (f"Metadata-Version: 2.1\nName: {PACKAGE}\nVersion: {_version()}\n"
            f"Summary: {SUMMARY}\nRequires-Python: >=3.8\nRequires-Dist: numpy\n"
            "Provides-Extra: examples\n"
            'Requires-Dist: astropy; extra == "examples"\n'
            'Requires-Dist: matplotlib; extra == "examples"\n'
            "Description-Content-Type: text/markdown\n\n" + _read("README.md"))


def _wheel_files():
    info = f"{PACKAGE}-{_version()}.dist-info"
    files = {f"{PACKAGE}/{name}": _read(PACKAGE, name) for name in _sources()}
    files[f"{info}/METADATA"] = _metadata()
    files[f"{info}/WHEEL"] = ("Wheel-Version: 1.0\nGenerator: tessera_build\n"
                              "Root-Is-Purelib: true\nTag: py3-none-any\n")
    return info, files


def get_requires_for_build_wheel(config_settings=None):
    return []


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    info, files = _wheel_files()
    os.makedirs(os.path.join(metadata_directory, info))
    for name, text in files.items():
        if name.startswith(info):
            with open(os.path.join(metadata_directory, name), "w", encoding="utf-8") as f:
                f.write(text)
    return info


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    info, files = _wheel_files()
    record = ""
    name = f"{PACKAGE}-{_version()}-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(wheel_directory, name), "w",
                         zipfile.ZIP_DEFLATED) as wheel:
        for path, text in files.items():
            data = text.encode()
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest())
            record += f"{path},sha256={digest.decode().rstrip('=')},{len(data)}\n"
            wheel.writestr(path, data)
        wheel.writestr(f"{info}/RECORD", record + f"{info}/RECORD,,\n")
    return name


def build_sdist(sdist_directory, config_settings=None):
    base = f"{PACKAGE}-{_version()}"
    names = ["pyproject.toml", "README.md", "tessera_build.py"]
    names += [os.path.join(PACKAGE, f) for f in _sources()]
    with tarfile.open(os.path.join(sdist_directory, base + ".tar.gz"), "w:gz",
                      format=tarfile.PAX_FORMAT) as archive:
        for name in names:
            archive.add(os.path.join(HERE, name), f"{base}/{name}")
        info = tarfile.TarInfo(f"{base}/PKG-INFO")
        data = _metadata().encode()
        info.size = len(data)
        archive.addfile(info, io.BytesIO(data))
    return base + ".tar.gz"
