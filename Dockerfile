# The demo in a container:
#
#   docker build -t passnet . && docker run --rm --security-opt seccomp=unconfined passnet
#
# With Docker's own seccomp profile, users in a container may make no namespaces. Candidate code then
# runs without a sandbox, and passnet says so. A test checks this file's packages, paths and targets;
# the image itself was not built where passnet is developed, which has no Docker daemon.
FROM python:3.12-slim-bookworm
RUN apt-get update \
  && apt-get install -y --no-install-recommends bubblewrap g++ libseccomp2 make \
  && rm -rf /var/lib/apt/lists/*
WORKDIR /passnet
COPY . .
ARG PIP_ARGS="--no-cache-dir --extra-index-url https://download.pytorch.org/whl/cpu"
ARG TORCH="torch==2.13.0+cpu"
RUN make .venv/core PYTHON=python PIP_ARGS="$PIP_ARGS" TORCH="$TORCH" && mkdir -p runs && chmod 777 runs
# A user without an entry in /etc/passwd and without a home, as clusters start containers.
USER 54321:54321
CMD ["make", "demo"]
