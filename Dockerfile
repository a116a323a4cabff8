# docker build --tag sojourn . ; docker run --rm sojourn compare pfifo fq_codel
# Live runs need namespaces: docker run --rm --privileged --user root sojourn live -- PROGRAM
FROM rust:1.95-slim-bookworm AS build
RUN apt-get update && apt-get install --yes --no-install-recommends python3 python3-venv && rm -rf /var/lib/apt/lists/*
WORKDIR /sojourn
COPY . .
# Results record it: docker build --build-arg SOJOURN_COMMIT="$(git rev-parse --short=12 HEAD)" .
ARG SOJOURN_COMMIT=""
RUN python3 -m venv /opt/sojourn && /opt/sojourn/bin/pip install --no-cache-dir .

FROM debian:bookworm-slim
RUN apt-get update \
    && apt-get install --yes --no-install-recommends python3 iproute2 curl iperf3 irtt iputils-ping \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /opt/sojourn /opt/sojourn
ENV PATH=/opt/sojourn/bin:$PATH
RUN useradd --create-home --uid 1000 sojourn
USER sojourn
WORKDIR /home/sojourn
ENTRYPOINT ["sojourn"]
