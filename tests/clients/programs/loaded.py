# A program that loads the libraries itself: loaded.py main|thread|threads. Prints what it has got, and the date.

import ctypes
import sys
import threading

COUNT = 1000
MPI_CHAR, WORLD = 0x0101, 1
FP32, SUM, TO_DEVICE, TO_HOST = 4, 0, 1, 2

hccl, acl, mpi = (ctypes.CDLL(f"lib{name}.so") for name in ("hccl", "ascendcl", "mpi"))
acl.hcclsimDate.restype = ctypes.c_double


def check(status):
    if status != 0:
        raise RuntimeError(status)


def allreduce(device, comm):
    check(acl.aclrtSetDevice(device))
    stream, memory = ctypes.c_void_p(), ctypes.c_void_p()
    size = ctypes.c_size_t(4 * COUNT)
    check(acl.aclrtCreateStream(ctypes.byref(stream)))
    check(acl.aclrtMalloc(ctypes.byref(memory), size, 0))
    host = (ctypes.c_float * COUNT)(*[device + 1.0] * COUNT)
    check(acl.aclrtMemcpy(memory, size, host, size, TO_DEVICE))
    check(hccl.HcclAllReduce(memory, memory, ctypes.c_uint64(COUNT), FP32, SUM, comm, stream))
    check(acl.aclrtSynchronizeStream(stream))
    check(acl.aclrtMemcpy(host, size, memory, size, TO_HOST))
    print(f"device {device}: {host[COUNT - 1]} at {acl.hcclsimDate():.9g} s", flush=True)


def process_per_npu(in_thread):
    rank, ranks, comm = ctypes.c_int(), ctypes.c_int(), ctypes.c_void_p()
    mpi.MPI_Init(None, None)
    mpi.MPI_Comm_rank(WORLD, ctypes.byref(rank))
    mpi.MPI_Comm_size(WORLD, ctypes.byref(ranks))
    check(acl.aclrtSetDevice(rank.value))
    root = ctypes.create_string_buffer(4108)
    if rank.value == 0:
        check(hccl.HcclGetRootInfo(root))
    mpi.MPI_Bcast(root, 4108, MPI_CHAR, 0, WORLD)
    check(hccl.HcclCommInitRootInfo(ranks.value, root, rank.value, ctypes.byref(comm)))
    if in_thread:
        thread = threading.Thread(target=allreduce, args=(rank.value, comm))
        thread.start()
        thread.join()
    else:
        allreduce(rank.value, comm)
    mpi.MPI_Finalize()


def thread_per_npu(npus):
    comms = (ctypes.c_void_p * npus)()
    check(hccl.HcclCommInitAll(npus, (ctypes.c_int32 * npus)(*range(npus)), comms))
    threads = [threading.Thread(target=allreduce, args=(npu, ctypes.c_void_p(comms[npu]))) for npu in range(npus)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


check(acl.aclInit(None))
if sys.argv[1] == "threads":
    thread_per_npu(4)
else:
    process_per_npu(sys.argv[1] == "thread")
