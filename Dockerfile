# An image with everything that builds, tests and runs Bluebell on the software device.
# Untried in a container engine. Its steps ran one by one as root in a new Debian 12 made by debootstrap
# (devtools/fresh, 2026-11-26): devtools/run, the installation, then testrdma.
#   docker build -t bluebell .
#   docker run --rm bluebell                       # verified RDMA traffic on soft0
#   docker run --rm -it bluebell devtools/test     # the tests
FROM debian:12
COPY . /bluebell
WORKDIR /bluebell
RUN devtools/run && ninja -C build install && ldconfig
CMD ["devtools/run"]
