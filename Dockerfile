# hcclsim as an image: docker build -t hcclsim . && docker run --rm hcclsim run --model resnet50
FROM debian:12-slim AS build
COPY . /hcclsim
RUN cd /hcclsim && ./bootstrap install /opt/hcclsim --component command --strip

FROM debian:12-slim
RUN apt-get update && apt-get install --yes --no-install-recommends libsimgrid3.32 libfmt9 libpugixml1v5 libdnnl2 libprotobuf32 \
      libonnx1 zlib1g libsqlite3-0 libyaml-cpp0.7 libmimalloc2.0 python3 \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /opt/hcclsim /opt/hcclsim
ENV PATH=/opt/hcclsim/bin:$PATH
WORKDIR /work
ENTRYPOINT ["hcclsim"]
CMD ["--help"]
