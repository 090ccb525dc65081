# For 64-bit Arm under Linux, by Debian's cross compiler (gcc-aarch64-linux-gnu, libc6-dev-arm64-cross):
#   cmake -S . -B build/aarch64 -G Ninja -DUIR_RUNTIME_ONLY=ON -DCMAKE_TOOLCHAIN_FILE=cmake/toolchains/aarch64-linux-gnu.cmake
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
# Only libraries and headers of the target; programs of the build machine.
set(CMAKE_FIND_ROOT_PATH /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
# Programs of the target, run while building or testing (qemu-user).
find_program(UIR_QEMU_AARCH64 qemu-aarch64)
if(UIR_QEMU_AARCH64)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${UIR_QEMU_AARCH64} -L /usr/aarch64-linux-gnu)
endif()
