# The image of launch/cluster/rayjob.yaml and raycluster.yaml:   docker build -t IMAGE . && docker push IMAGE
# On linux/amd64 the constraints' torch is the CUDA build, which brings its own CUDA libraries; nodes need the NVIDIA driver only.
FROM python:3.12-slim

# KubeRay's probes of a pod's health call wget; the loop of batch-1 SGD is compiled where it runs
RUN apt-get update \
    && apt-get install -y --no-install-recommends wget gcc libc6-dev \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 1000 --create-home seeds

WORKDIR /manyseeds

# the packages first: they change less often than the code
COPY pyproject.toml constraints.txt ./
RUN python -c 'import tomllib; print("\n".join(tomllib.load(open("pyproject.toml", "rb"))["project"]["dependencies"]))' > /tmp/requirements.txt \
    && pip install --no-cache-dir -c constraints.txt -r /tmp/requirements.txt

COPY README.md LICENSE ./
COPY results results
COPY tasks tasks
COPY models models
COPY harness harness
COPY launch launch
RUN pip install --no-cache-dir --no-deps -e .

USER 1000
CMD ["manyseeds", "--help"]
