# docker build --tag sojourn . ; docker run --rm sojourn compare pfifo fq_codel
# Live runs need the namespaces of the host: docker run --rm --privileged sojourn live -- PROGRAM
FROM rust:1.95-slim-bookworm AS build
RUN apt-get update && apt-get install --yes --no-install-recommends python3 python3-venv && rm -rf /var/lib/apt/lists/*
WORKDIR /sojourn
COPY . .
RUN python3 -m venv /opt/sojourn && /opt/sojourn/bin/pip install --no-cache-dir .

FROM debian:bookworm-slim
RUN apt-get update \
    && apt-get install --yes --no-install-recommends python3 iproute2 curl iperf3 irtt iputils-ping \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /opt/sojourn /opt/sojourn
ENV PATH=/opt/sojourn/bin:$PATH
WORKDIR /work
ENTRYPOINT ["sojourn"]
