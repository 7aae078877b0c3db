"""Media types by suffix, the same on every host, unlike those of the system. Pure."""

from __future__ import annotations

OCTETS = "application/octet-stream"
PLAIN = "text/plain"

_TEXT = {
    "c": "text/x-c",
    "cpp": "text/x-c++",
    "cs": "text/x-csharp",
    "css": "text/css",
    "csv": "text/csv",
    "go": "text/x-go",
    "h": "text/x-c",
    "htm": "text/html",
    "html": "text/html",
    "java": "text/x-java",
    "js": "text/javascript",
    "json": "application/json",
    "md": "text/markdown",
    "mjs": "text/javascript",
    "py": "text/x-python",
    "rs": "text/x-rust",
    "sh": "application/x-sh",
    "sql": "application/sql",
    "svg": "image/svg+xml",
    "toml": "application/toml",
    "ts": "text/x-typescript",
    "txt": PLAIN,
    "xml": "application/xml",
    "yaml": "application/yaml",
    "yml": "application/yaml",
}
_BINARY = {
    "gif": "image/gif",
    "gz": "application/gzip",
    "jpeg": "image/jpeg",
    "jpg": "image/jpeg",
    "mp3": "audio/mpeg",
    "mp4": "video/mp4",
    "pdf": "application/pdf",
    "png": "image/png",
    "tar": "application/x-tar",
    "wasm": "application/wasm",
    "wav": "audio/wav",
    "webp": "image/webp",
    "woff2": "font/woff2",
    "zip": "application/zip",
}


def media_type(path: str) -> str | None:
    suffix = _suffix(path)
    return _TEXT.get(suffix) or _BINARY.get(suffix)


def is_binary(path: str) -> bool:
    """Return whether the suffix is that of a binary format. The bytes are not checked."""
    return _suffix(path) in _BINARY


def _suffix(path: str) -> str:
    name = path.rpartition("/")[2]
    stem, _, suffix = name.rpartition(".")
    return suffix.lower() if stem else ""
