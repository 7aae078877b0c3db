# The reference server alone: standard library only, no network at run time, no privilege.
#
#   docker build -t mcp-touchstone-reference .
#   docker run --rm -i --network none -v "$PWD:/workspace" mcp-touchstone-reference
FROM python:3.12-slim

# --build-arg EXTRA=cedarscript adds the libraries of that extra of pyproject.toml.
ARG EXTRA=""
COPY pyproject.toml /tmp/build/
RUN set -eu; \
    if [ -n "$EXTRA" ]; then \
      python -c "import sys, tomllib; print(*tomllib.load(sys.stdin.buffer)['project']['optional-dependencies'][sys.argv[1]], sep='\n')" "$EXTRA" \
        < /tmp/build/pyproject.toml > /tmp/build/wanted; \
      pip install --no-cache-dir -r /tmp/build/wanted; \
    fi; \
    rm -r /tmp/build

COPY reference_server /opt/mcp/reference_server
RUN python -m compileall -q /opt/mcp && \
    useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin mcp

# Safe path: a json.py in the directory that is served must not be imported.
ENV PYTHONPATH=/opt/mcp PYTHONSAFEPATH=1 PYTHONDONTWRITEBYTECODE=1
USER 10001:10001
WORKDIR /workspace
ENTRYPOINT ["python", "-m", "reference_server"]
CMD ["--root", "/workspace"]
