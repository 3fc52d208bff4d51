# The demo in a container:
#
#   docker build -t passnet . && docker run --rm --security-opt seccomp=unconfined passnet
#
# With Docker's own seccomp profile, users in a container may make no namespaces. Candidate code then
# runs without a sandbox, and passnet says so.
#
# The image was not built: the machine that passnet is developed on has no Docker daemon. Its steps ran
# there in a new Debian bookworm, with Debian's Python 3.11 and headers in place of the image's Python:
# these packages, `make .venv/core`, and a task of the demo as the user below, with namespaces and
# without. torch came from a folder, as the index named below could not be reached. A test checks
# packages, paths and targets.
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
ENV MPLCONFIGDIR=/tmp/matplotlib
CMD ["make", "demo"]
