"""Texts as people paste them, one of each kind: what the hostile tests mutate and the benchmark reads."""

COLLECT_ENV = """Collecting environment information...
PyTorch version: 2.4.1+cu121
Is debug build: False
CUDA used to build PyTorch: 12.1
ROCM used to build PyTorch: N/A

OS: Ubuntu 22.04.4 LTS (x86_64)
GCC version: (Ubuntu 11.4.0-1ubuntu1~22.04) 11.4.0
Clang version: Could not collect
CMake version: version 3.22.1
Libc version: glibc-2.35

Python version: 3.10.12 (main, Sep 11 2024, 15:47:36) [GCC 11.4.0] (64-bit runtime)
Python platform: Linux-6.5.0-35-generic-x86_64-with-glibc2.35
Is CUDA available: False
CUDA runtime version: 12.1.105
CUDA_MODULE_LOADING set to: N/A
GPU models and configuration:
GPU 0: NVIDIA RTX A4000
GPU 1: NVIDIA RTX A4000

Nvidia driver version: 470.223.02
cuDNN version: Probably one of the following:
/usr/lib/x86_64-linux-gnu/libcudnn.so.8.9.7
HIP runtime version: N/A
Is XNNPACK available: True

CPU:
Architecture:                       x86_64
CPU(s):                             32
Model name:                         AMD EPYC 7302 16-Core Processor

Versions of relevant libraries:
[pip3] numpy==1.26.4
[pip3] nvidia-cudnn-cu12==9.1.0.70
[pip3] torch==2.4.1+cu121
[pip3] torchvision==0.19.1+cu121
[conda] Could not collect
"""

NVIDIA_SMI = """alice@lab42:~$ nvidia-smi
Tue Oct  8 11:12:13 2024
+-----------------------------------------------------------------------------+
| NVIDIA-SMI 470.223.02   Driver Version: 470.223.02   CUDA Version: 11.4     |
|-------------------------------+----------------------+----------------------+
| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |
|                               |                      |               MIG M. |
|===============================+======================+======================|
|   0  NVIDIA RTX A4000    Off  | 00000000:41:00.0 Off |                  Off |
| 41%   38C    P8    14W / 140W |      5MiB / 16117MiB |      0%      Default |
|                               |                      |                  N/A |
+-------------------------------+----------------------+----------------------+
|   1  NVIDIA RTX A4000    Off  | 00000000:42:00.0 Off |                  Off |
| 41%   36C    P8    13W / 140W |  15204MiB / 16117MiB |     97%      Default |
|                               |                      |                  N/A |
+-------------------------------+----------------------+----------------------+

+-----------------------------------------------------------------------------+
| Processes:                                                                  |
|  GPU   GI   CI        PID   Type   Process name                  GPU Memory |
|        ID   ID                                                   Usage      |
|=============================================================================|
|    1   N/A  N/A      4711      C   python                          15199MiB |
+-----------------------------------------------------------------------------+
"""

NVIDIA_SMI_QUERY = """==============NVSMI LOG==============

Timestamp                                 : Tue Oct  8 11:12:13 2024
Driver Version                            : 535.183.01
CUDA Version                              : 12.2

Attached GPUs                             : 1
GPU 00000000:01:00.0
    Product Name                          : NVIDIA A100-SXM4-80GB
    Persistence Mode                      : Enabled
    MIG Mode
        Current                           : Disabled
        Pending                           : Disabled
    GPU UUID                              : GPU-5a0c1f9e-11aa-22bb-33cc-0123456789ab
    FB Memory Usage
        Total                             : 81920 MiB
        Used                              : 4 MiB
    Clocks Event Reasons
        Idle                              : Active
        HW Slowdown                       : Not Active
    ECC Errors
        Volatile
            SRAM Uncorrectable            : 0
            DRAM Uncorrectable            : 0
"""

NVIDIA_SMI_XML = """<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">
<nvidia_smi_log>
  <driver_version>535.183.01</driver_version>
  <cuda_version>12.2</cuda_version>
  <attached_gpus>1</attached_gpus>
  <gpu id="00000000:01:00.0">
    <product_name>NVIDIA A10</product_name>
    <uuid>GPU-5a0c1f9e-11aa-22bb-33cc-0123456789ab</uuid>
    <fb_memory_usage><total>23028 MiB</total><used>4 MiB</used></fb_memory_usage>
  </gpu>
</nvidia_smi_log>
"""

NVIDIA_SMI_LIST = """GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-5a0c1f9e-11aa-22bb-33cc-0123456789ab)
  MIG 3g.20gb     Device  0: (UUID: MIG-5a0c1f9e-11aa-22bb-33cc-0123456789ac)
"""

PIP_LIST = """Package                  Version
------------------------ ------------
cupy-cuda12x             13.3.0
numpy                    2.1.2
nvidia-cublas-cu12       12.1.3.1
pynvml                   11.5.3
torch                    2.4.1+cu121
torchvision              0.19.1+cu121
"""

PIP_FREEZE = "numpy==1.26.4\ntorch==2.1.1+cu118\ntorchaudio==2.1.1+cu118\nvllm @ file:///tmp/x\n"

PIP_JSON = '[{"name": "torch", "version": "2.1.1+cpu"}, {"name": "numpy", "version": "1.26.4"}]\n'

CONDA_LIST = """# packages in environment at /opt/conda/envs/work:
#
# Name                    Version                   Build  Channel
cpuonly                   2.0                           0    pytorch
python                    3.10.14              h955ad1f_1
pytorch                   2.2.2              py3.10_cpu_0    pytorch
pytorch-mutex             1.0                         cpu    pytorch
"""

CONDA_INFO = """     active environment : work
            shell level : 2
          conda version : 24.5.0
         python version : 3.12.4.final.0
       virtual packages : __archspec=1=zen2
                          __cuda=12.2=0
                          __glibc=2.35=0
               platform : linux-64
"""

CUPY_CONFIG = """OS                           : Linux-6.5.0-35-generic-x86_64-with-glibc2.35
Python Version               : 3.10.12
CuPy Version                 : 13.3.0
CuPy Platform                : NVIDIA CUDA
NumPy Version                : 2.1.2
CUDA Root                    : None
nvcc PATH                    : None
CUDA Build Version           : 12060
CUDA Driver Version          : 12020
CUDA Runtime Version         : 12060 (linked to CuPy) / RuntimeError('CuPy failed to load libcudart.so.12')
cuBLAS Version               : ImportError('libcublas.so.12: cannot open shared object file')
NVRTC Version                : (12, 2)
Device 0 Name                : NVIDIA A10
Device 0 Compute Capability  : 86
"""

NVCC = """nvcc: NVIDIA (R) Cuda compiler driver
Copyright (c) 2005-2023 NVIDIA Corporation
Cuda compilation tools, release 12.3, V12.3.107
Build cuda_12.3.r12.3/compiler.33567101_0
"""

DOCKER_INFO = """Client: Docker Engine - Community
 Version:    27.1.1
Server:
 Runtimes: io.containerd.runc.v2 runc
 Default Runtime: runc
 Operating System: Ubuntu 22.04.4 LTS
 Docker Root Dir: /var/lib/docker
"""

KERNEL_LOG = """[ 12.345678] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  535.183.01
[74889.644138] NVRM: Xid (PCI:0000:02:00): 79, pid=1234, GPU has fallen off the bus.
"""

DS_REPORT = """--------------------------------------------------
DeepSpeed C++/CUDA extension op report
--------------------------------------------------
torch install path ............... ['/opt/conda/lib/python3.10/site-packages/torch']
torch version .................... 2.4.1+cu121
deepspeed info ................... 0.15.1, unknown, unknown
torch cuda version ............... 12.1
nvcc version ..................... 12.4
shared memory (/dev/shm) size .... 64.00 MB
"""

ACCELERATE_ENV = """- `Accelerate` version: 0.34.2
- Platform: Linux-6.5.0-35-generic-x86_64-with-glibc2.35
- Python version: 3.10.12
- PyTorch version (GPU?): 2.4.1+cu121 (True)
- GPU type: NVIDIA A10
"""

TRANSFORMERS_ENV = """- `transformers` version: 4.45.1
- Platform: Windows-10-10.0.22631-SP0
- Python version: 3.11.9
- PyTorch version (GPU?): 2.4.1+cpu (False)
- Using GPU in script?: yes
"""

TRACEBACK = """Traceback (most recent call last):
  File "/home/alice/train.py", line 3, in <module>
    model.cuda()
RuntimeError: The NVIDIA driver on your system is too old (found version 11040). Please update your GPU driver
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 4.00 GiB
ImportError: libcudnn.so.9: cannot open shared object file: No such file or directory
"""

COMMANDS = """$ export LD_LIBRARY_PATH=/usr/local/cuda-11.8/lib64
$ CUDA_VISIBLE_DEVICES=1 python train.py
$ docker run --rm -it nvidia/cuda:12.2.2-base-ubuntu22.04 bash
root@098b49afe624:/# python -c "import torch; print(torch.__version__)"
2.4.1+cu121
OS: Ubuntu 22.04, GPU: RTX 3060, driver 535.54.03
"""

GPUSTAT = """render7   Tue Feb 11 09:12:44 2025  550.90.07
[0] NVIDIA L40S         | 41°C,   3 % |   812 / 46068 MB | alex(804M)
[1] NVIDIA L40S         | 38'C,  ?? % |     4 / 46068 MB |
"""

ALL = {name: value for name, value in dict(globals()).items() if name.isupper() and isinstance(value, str)}
