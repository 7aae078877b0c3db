# The checker, with what starts most servers: Node.js and npm, Python and uv. bubblewrap is for sandboxes.
#
#   docker build -f checker.Dockerfile -t mcp-touchstone .
#   docker run --rm mcp-touchstone check -- npx -y SOME-SERVER
#
# docs/guides/ci.md has the lines for a folder and a URL. The tag of the base image moves. To build on a known
# one, give its digest: --build-arg BASE=node:24-trixie-slim@sha256:...
ARG BASE=node:24-trixie-slim

FROM $BASE AS base
RUN apt-get update && \
    apt-get install -y --no-install-recommends bubblewrap ca-certificates git python3 python3-venv && \
    rm -rf /var/lib/apt/lists/*

FROM base AS built
COPY . /src
RUN /src/.ci/install-checker /opt/mcp-touchstone

FROM base
COPY --from=built /opt/mcp-touchstone /opt/mcp-touchstone
# Any user may be chosen with --user, so that reports in a mounted folder belong to who started the container.
RUN useradd --uid 10001 --create-home mcp && chmod 1777 /home/mcp
ENV PATH=/opt/mcp-touchstone/bin:$PATH HOME=/home/mcp PYTHONDONTWRITEBYTECODE=1
USER 10001:10001
WORKDIR /work
ENTRYPOINT ["mcp-touchstone"]
CMD ["--help"]
