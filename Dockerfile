# The reference server alone: standard library only, no network at run time, no privilege.
#
#   docker build -t mcp-touchstone-reference .
#   docker run --rm -i --network none -v "$PWD:/workspace" mcp-touchstone-reference
#
# The tag of the base image moves. To build on a known one, give its digest:
#   --build-arg BASE=python:3.12-slim@sha256:...
ARG BASE=python:3.12-slim
FROM $BASE

# --build-arg EXTRA=cedarscript adds the libraries of that extra of pyproject.toml, as locked.
ARG EXTRA=""
COPY locks /tmp/locks
RUN set -eu; \
    if [ -n "$EXTRA" ]; then \
      pip install --no-cache-dir --require-hashes --only-binary :all: -r "/tmp/locks/$EXTRA.txt"; \
    fi; \
    rm -r /tmp/locks

COPY reference_server /opt/mcp/reference_server
RUN python -m compileall -q /opt/mcp && \
    useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin mcp

# Safe path: a json.py in the directory that is served must not be imported.
ENV PYTHONPATH=/opt/mcp PYTHONSAFEPATH=1 PYTHONDONTWRITEBYTECODE=1
USER 10001:10001
WORKDIR /workspace
ENTRYPOINT ["python", "-m", "reference_server"]
CMD ["--root", "/workspace"]
