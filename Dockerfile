# An image with everything that builds, tests and runs Bluebell on the software device.
# Untried: no container engine was at hand. devtools/run is what the README shows for a new Debian 12.
#   docker build -t bluebell .
#   docker run --rm bluebell                       # verified RDMA traffic on soft0
#   docker run --rm -it bluebell devtools/test     # the tests
FROM debian:12
COPY . /bluebell
WORKDIR /bluebell
RUN devtools/run && ninja -C build install && ldconfig
CMD ["devtools/run"]
