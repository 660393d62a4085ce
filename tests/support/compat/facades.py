"""Programs of other libraries run on the façades, for comparison with the libraries themselves."""

import subprocess

# Runs a file with the façades in place: the path, a folder for sys.path, and the file's own arguments.
UNDER_FACADE = (
    "import runpy, sys; path, folder, *rest = sys.argv[1:]; sys.path.append(folder); "
    "sys.path.insert(0, path.rpartition('/')[0]); sys.argv = [path, *rest]; "
    "from isthmus.compat.imports import install_facades; install_facades(); "
    "runpy.run_path(path, run_name='__main__')"
)


def declare_installed(folder, python, library):
    """Have a folder say that the library of another environment is installed: its version decides on some texts."""
    ask = f"import importlib.metadata as m; print(m.version('{library}'))"
    version = subprocess.check_output([python, "-c", ask], text=True).strip()
    declared = folder / f"{library}-{version}.dist-info"
    declared.mkdir()
    (declared / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {library}\nVersion: {version}\n"
    )
    return str(folder)
