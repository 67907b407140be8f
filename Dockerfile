# A machine with dumbbell, from the wheel that `make wheel` left in dist/:
#   make wheel && docker build --tag dumbbell . && docker run --rm dumbbell list
# Real packets: docker run --rm --privileged --device /dev/net/tun dumbbell run FILE --backend linux
FROM python:3.13-slim
RUN apt-get update \
 && apt-get install --yes --no-install-recommends iproute2 libbpf1 \
 && rm -rf /var/lib/apt/lists/*
COPY dist/*.whl /tmp/
RUN pip install --no-cache-dir /tmp/*.whl && rm /tmp/*.whl
WORKDIR /work
ENTRYPOINT ["dumbbell"]
CMD ["--help"]
