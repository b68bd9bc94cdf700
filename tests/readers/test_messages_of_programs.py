"""Messages of many programs, each with the check that it leads to: a catalogue of what people paste."""

from __future__ import annotations

import pytest

from gpudoctor.engine.runner import run_checks
from gpudoctor.readers.report import read_texts
from tests.own_checks import own_checks

MESSAGES = {
    "amp-unsupported": [
        (
            "GTX 1660 Ti: WARNING AMP checks failed. Anomalies were detected with AMP on your system that "
            "may lead to NaN losses or zero-mAP results, so AMP will be disabled during training."
        ),
    ],
    "bf16-unsupported": [
        (
            "ValueError: Bfloat16 is only supported on GPUs with compute capability of at least 8.0. Your "
            "Tesla T4 GPU has compute capability 7.5. You can use float16 instead by explicitly setting "
            "the`dtype` flag in CLI, for example: --dtype=half."
        ),
        ("ValueError: Your setup doesn't support bf16/gpu. You need torch>=1.10, using Ampere GPU with cuda>=11.0"),
        "RuntimeError: Current CUDA Device does not support bfloat16. Please switch dtype to float16.",
        "RuntimeError: \"triu_tril_cuda_template\" not implemented for 'BFloat16'",
        ("ptxas /tmp/x.ptx, line 52; error: Feature '.bf16' requires .target sm_80 or higher\n Tesla V100"),
        ("raise ValueError('bf16 mixed precision requires PyTorch >= 1.10 and a supported device.') on GTX 1080"),
    ],
    "bitsandbytes-cuda-setup": [
        (
            "CUDA SETUP: Loading binary "
            "/home/u/venv/lib/python3.10/site-packages/bitsandbytes/libbitsandbytes_cpu.so...\n"
            "The installed version of bitsandbytes was compiled without GPU support. 8-bit optimizers, "
            "8-bit multiplication, and GPU quantization are unavailable."
        ),
        (
            "CUDA SETUP: CUDA detection failed! Possible reasons:\n"
            "1. You need to manually override the desired CUDA runtime library.\n"
            "2. CUDA driver not installed"
        ),
        (
            "AttributeError: /usr/local/lib/python3.10/dist-packages/bitsandbytes/libbitsandbytes_cpu.so: "
            "undefined symbol: cget_col_row_stats"
        ),
        (
            "Could not find the bitsandbytes CUDA binary at "
            "PosixPath('/opt/conda/lib/python3.11/site-packages/bitsandbytes/libbitsandbytes_cuda129.so')"
        ),
        (
            "RuntimeError: Configured CUDA binary not found at "
            "/venv/lib/python3.10/site-packages/bitsandbytes/libbitsandbytes_cuda130.so"
        ),
        (
            "RuntimeError: CUDA Setup failed despite GPU being available. Please run the following command "
            "to get more information: python -m bitsandbytes"
        ),
        (
            "bitsandbytes/cextension.py: UserWarning: The installed version of bitsandbytes was compiled "
            "without GPU support.\n"
            "NameError: name 'str2optimizer32bit' is not defined"
        ),
        (
            "NameError: name 'cquantize_blockwise_fp16_nf4' / 'NoneType' object has no attribute "
            "'cquantize_blockwise_fp16_nf4'"
        ),
        (
            "ImportError: Using `bitsandbytes` 8-bit quantization requires the latest version of "
            "bitsandbytes: `pip install -U bitsandbytes`\n"
            " GPU RTX 4090 "
        ),
    ],
    "build-isolation-hides-torch": [
        (
            "  x Getting requirements to build wheel did not run successfully.\n"
            '      File "<string>", line 19, in <module>\n'
            "      ModuleNotFoundError: No module named 'torch'\n"
            "Collecting flash-attn"
        ),
        (
            "Collecting torch-scatter\n"
            "  error: subprocess-exited-with-error\n"
            "  x python setup.py egg_info did not run successfully.\n"
            "  ModuleNotFoundError: No module named 'torch'\n"
            "  note: This error originates from a subprocess\n"
            ">>> import torch works"
        ),
        (
            "x Failed to build `flash-attn==2.7.0`\n"
            "  ModuleNotFoundError: No module named 'torch'\n"
            "  hint: This error likely indicates that `flash-attn@2.7.0` depends on `torch`, but doesn't "
            "declare it as a build dependency."
        ),
        "error: Failed to build `torch-cluster==1.6.3`: ModuleNotFoundError: No module named 'torch'",
        (
            "RuntimeError: Building apex: Torch not found; pip install -v . --no-cache-dir ./apex\n"
            " ModuleNotFoundError: No module named 'torch' in pyproject build"
        ),
    ],
    "conda-cpuonly-solved": [
        (
            "The following NEW packages will be INSTALLED: cpuonly pytorch/noarch::cpuonly-2.0-0, pytorch "
            "2.1.0-py3.10_cpu_0\n"
            " I asked for cuda"
        ),
        "pytorch 2.4.1 cpu_generic_py311h7a9ee28_0 conda-forge; nvidia-smi RTX 4080",
    ],
    "container-image-needs-newer-driver": [
        (
            "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.4, please update your "
            "driver to a newer version, or use an earlier cuda container: unknown."
        ),
        (
            "ERROR: This container was built for NVIDIA Driver Release 550.54 or later, but version "
            "535.129.03 was detected and compatibility mode is UNAVAILABLE."
        ),
    ],
    "container-nvml-lost": [
        (
            "Failed to initialize NVML: Unknown Error\n"
            "the container worked for some hours, then after systemctl daemon-reload nvidia-smi in it fails"
        ),
        (
            "docker exec app nvidia-smi\n"
            "Failed to initialize NVML: Unknown Error\n"
            "after apt upgrade on host ran daemon-reload"
        ),
    ],
    "container-without-gpu": [
        (
            "WARNING: The NVIDIA Driver was not detected.  GPU functionality will not be available.\n"
            "   Use the NVIDIA Container Toolkit to start this container with GPU support; see"
        ),
        "Singularity: INFO: Could not find any nv files on this host!",
        ("apptainer exec image.sif python -c 'import torch; print(torch.cuda.is_available())'\nFalse\noutside True"),
    ],
    "cuda-build-on-amd": [
        "torch 2.1.0+cu121; AMD Radeon RX 6800 XT; RuntimeError: Found no NVIDIA driver on your system.",
        "Radeon RX 7900 XTX, torch 2.4.0+cu121: RuntimeError: Found no NVIDIA driver on your system.",
    ],
    "cuda-init-unknown-error-999": [
        (
            "UserWarning: CUDA initialization: CUDA unknown error - this may be due to an incorrectly set "
            "up environment, e.g. changing env variable CUDA_VISIBLE_DEVICES after program start. Setting "
            "the available devices to be zero."
        ),
        "cuInit(0) returned 999: CUDA_ERROR_UNKNOWN; after resuming my laptop from sleep",
        ("failed call to cuInit: CUDA_ERROR_UNKNOWN: unknown error\nnvidia-smi works"),
        (
            "ggml_cuda_init: failed to initialize CUDA: unknown error\n"
            "ollama: cuda driver library failed to get device context 999"
        ),
        (
            "CUDA call failed lazily at initialization with error: CUDA unknown error - this may be due to "
            "an incorrectly set up environment"
        ),
        ("pycuda._driver.LogicError: cuInit failed: unknown error\nworks after reboot, fails after suspend"),
        ("cudaErrorUnknown: unknown error\n numba; after laptop suspend"),
    ],
    "cuda-libs-conflict": [
        (
            "ImportError: /home/a/miniconda3/lib/python3.11/site-packages/torch/lib/../../nvidia/cusparse/lib"
            "/libcusparse.so.12: undefined symbol: __nvJitLinkComplete_12_4, version libnvJitLink.so.12"
        ),
        "ImportError: /site-packages/torch/lib/libtorch_cuda.so: undefined symbol: ncclCommRegister",
        (
            "OSError: /usr/local/cuda/lib64/libcublas.so.11: symbol cublasLtHSHMatmulAlgoInit version "
            "libcublasLt.so.11 not defined in file libcublasLt.so.11 with link time reference"
        ),
        ("ImportError: libcupti.so.11.7: cannot open shared object file: No such file or directory (import torch)"),
        ("OSError: libcublas.so.11: cannot open shared object file\n torch 1.13.1 nvidia-cublas-cu11 missing"),
        ("RuntimeError: Library cublas64_12.dll is not found or cannot be loaded\nfaster-whisper"),
        "RuntimeError: Library libcublas.so.12 is not found or cannot be loaded",
        (
            "ImportError: libcudart.so.12: cannot open shared object file: No such file or directory\n"
            "from vllm._C\n"
            " torch 2.0.1+cu118"
        ),
        ("ImportError: libcusparseLt.so.0: cannot open shared object file: No such file or directory\n import torch"),
        ("OSError: libnccl.so.2: cannot open shared object file\n import torch"),
        "torch/lib/libcublas.so.11: undefined symbol: cublasLtGetStatusString, version libcublasLt.so.11",
        "ImportError: /lib/libtorch_python.so: undefined symbol: ncclCommInitRankConfig",
    ],
    "cuda-visible-devices-hides-gpu": [
        ("CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected\n$ echo $CUDA_VISIBLE_DEVICES\n-1"),
        ("RuntimeError: CUDA error: invalid device ordinal\nCUDA_VISIBLE_DEVICES=0\nmodel.to('cuda:1')"),
        ("export CUDA_VISIBLE_DEVICES=\"\"\npython -c 'import torch; print(torch.cuda.is_available())'\nFalse"),
        ("AssertionError: Invalid device id\n nn.DataParallel(model, device_ids=[0,1,2,3]); CUDA_VISIBLE_DEVICES=0,1"),
        ("RuntimeError: Attempting to deserialize object on CUDA device 1 but torch.cuda.device_count() is 1."),
    ],
    "cudnn-missing-or-mismatch": [
        (
            "Could not load dynamic library 'libcudnn.so.8'; dlerror: libcudnn.so.8: cannot open shared "
            "object file: No such file or directory\n"
            "Cannot dlopen some GPU libraries."
        ),
        "Could not locate zlibwapi.dll. Please make sure it is in your library path!",
        (
            "Unable to load any of {libcudnn_ops.so.9.1.0, libcudnn_ops.so.9.1, libcudnn_ops.so.9, "
            "libcudnn_ops.so}\n"
            "Invalid handle. Cannot load symbol cudnnCreateTensorDescriptor"
        ),
        (
            "Loaded runtime CuDNN library: 8.2.1 but source was compiled with: 8.6.0.  CuDNN library needs "
            "to have matching major version and equal or higher minor version."
        ),
        (
            "RuntimeError: cuDNN version incompatibility: PyTorch was compiled  against (8, 9, 2) but found "
            "runtime version (8, 5, 0). PyTorch already comes bundled with cuDNN."
        ),
        "Could not locate cudnn_ops64_9.dll. Please make sure it is in your library path!",
        (
            "[ONNXRuntimeError] : 1 : FAIL : LoadLibrary failed with error 126 when trying to load "
            "onnxruntime_providers_cuda.dll which depends on cudnn64_8.dll"
        ),
        "Could not load library cudnn_cnn_infer64_8.dll. Error code 193",
        (
            "Could not load library libcudnn_ops_infer.so.8. Error: libcudnn_ops_infer.so.8: cannot open "
            "shared object file: No such file or directory"
        ),
        "RuntimeError: cuDNN error: CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH",
        "RuntimeError: cuDNN error: CUDNN_STATUS_NOT_INITIALIZED",
        (
            "E tensorflow/stream_executor/cuda/cuda_dnn.cc:389] Could not create cudnn handle: "
            "CUDNN_STATUS_NOT_INITIALIZED\n"
            "Possibly insufficient driver version"
        ),
        "UnimplementedError: DNN library is not found. [Op:Conv2D]",
        (
            "onnxruntime: Failed to create CUDAExecutionProvider. Require cuDNN 9.* and CUDA 12.*. Please "
            "install all dependencies"
        ),
        (
            "PreconditionNotMetError: The third-party dynamic library (libcudnn.so) that Paddle depends on "
            "is not configured correctly."
        ),
        (
            "XlaRuntimeError: FAILED_PRECONDITION: DNN library initialization failed.\n"
            "Loaded runtime CuDNN library: 8.5.0 but source was compiled with: 8.9.4"
        ),
    ],
    "cupy-arch-unsupported": [
        (
            "cupy.cuda.compiler.CompileException: nvrtc: error: invalid value for --gpu-architecture (-arch)\n"
            "RTX 4090, cupy-cuda112"
        ),
        (
            "cupy_backends.cuda.api.driver.CUDADriverError: CUDA_ERROR_NO_BINARY_FOR_GPU: no kernel image "
            "is available for execution on the device\n"
            "cupy-cuda13x on Tesla P100"
        ),
        ("CUDA_ERROR_INVALID_PTX / nvrtc: error: invalid value for --gpu-architecture (-arch) compute_120; cupy 13.3"),
    ],
    "cupy-cuda-libs-missing": [
        (
            "cupy.cuda.compiler.CompileException: /tmp/x.cu(2): catastrophic error: cannot open source file "
            '"cuda_fp16.h"'
        ),
        ("ImportError: DLL load failed while importing cublas: The specified module could not be found. cupy"),
        "cupy: libcufft.so.11: cannot open shared object file: No such file or directory",
    ],
    "cupy-missing": [
        "ModuleNotFoundError: No module named 'cupy'",
        ("ValueError: Cannot use GPU, CuPy is not installed\n  spacy.require_gpu()"),
        "cucim / raise RuntimeError: Missing optional dependency 'cupy'",
        "Cannot use chainer on GPU: cupy is not available. ModuleNotFoundError: No module named 'cupy'",
    ],
    "cupy-multiple-packages": [
        (
            "UserWarning: \n"
            "CuPy may not function correctly because multiple CuPy packages are installed\n"
            "in your environment:\n"
            "  cupy-cuda11x, cupy-cuda12x"
        ),
        "CuPy: multiple CuPy packages are installed in your environment: cupy, cupy-cuda12x",
    ],
    "cupy-numpy-incompatible": [
        (
            "ValueError: numpy.dtype size changed, may indicate binary incompatibility. Expected 96 from C "
            "header, got 88 from PyObject\n"
            '  File "cupy/_core/core.pyx"'
        ),
        (
            "ImportError: numpy.core.multiarray failed to import\n"
            '  File "cupy/_core/__init__.py"\n'
            " A module that was compiled using NumPy 1.x cannot be run in NumPy 2.0"
        ),
        ("AttributeError: `np.find_common_type` was removed  cupy/_core\n cupy 12.0 numpy 2.0"),
    ],
    "cupy-nvrtc-missing": [
        (
            "RuntimeError: CuPy failed to load libnvrtc.so.12: OSError: libnvrtc.so.12: cannot open shared "
            "object file: No such file or directory"
        ),
        (
            "RuntimeError: CuPy failed to load nvrtc64_120_0.dll: FileNotFoundError: Could not find module "
            "'nvrtc64_120_0.dll' (or one of its dependencies)."
        ),
        (
            "cupy.cuda.compiler: libnvrtc-builtins.so.12.4: cannot open; nvrtc: error: failed to open "
            "libnvrtc-builtins.so.12.4."
        ),
    ],
    "cupy-wrong-cuda-package": [
        (
            "cupy_backends.cuda.libs.nvrtc: RuntimeError: CuPy failed to load libnvrtc.so.11.2: OSError: "
            "libnvrtc.so.11.2\n"
            "nvcc 12.2, cupy-cuda11x 12.1.0"
        ),
    ],
    "driver-capabilities-missing": [
        (
            "docker run -e NVIDIA_DRIVER_CAPABILITIES=video --gpus all img nvidia-smi\n"
            'exec: "nvidia-smi": executable file not found in $PATH'
        ),
        ("ffmpeg: [h264_nvenc] Cannot load libnvidia-encode.so.1\nin docker with --gpus all"),
    ],
    "driver-library-mismatch": [
        ("Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 535.183"),
        (
            "NVRM: API mismatch: the client has the version 550.107.02, but\n"
            "NVRM: this kernel module has the version 550.90.07.  Please\n"
            "NVRM: make sure that this kernel module and all NVIDIA driver components have the same version."
        ),
        "CUDA error 803: system has unsupported display driver / cuda driver combination",
        "cudaErrorSystemDriverMismatch: system has unsupported display driver / cuda driver combination",
        ("nvidia-container-cli: initialization error: nvml error: driver/library version mismatch: unknown"),
        (
            "NVIDIA: API mismatch: the NVIDIA kernel module has version 470.103.01, but this NVIDIA driver "
            "component has version 470.129.06."
        ),
    ],
    "driver-missing": [
        (
            "Command 'nvidia-smi' not found, but can be installed with:\n"
            "sudo apt install nvidia-utils-535\n"
            " lspci: 01:00.0 3D controller: NVIDIA Corporation TU104GL [Tesla T4]"
        ),
        (
            "RuntimeError: Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU "
            "and installed a driver from http://www.nvidia.com/Download/index.aspx\n"
            "lspci shows NVIDIA RTX A4000"
        ),
    ],
    "driver-not-loaded": [
        "modprobe: ERROR: could not insert 'nvidia': Key was rejected by service",
        "modprobe: FATAL: Module nvidia not found in directory /lib/modules/6.8.0-45-generic",
        (
            "$ mokutil --sb-state\n"
            "SecureBoot enabled\n"
            "$ nvidia-smi\n"
            "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."
        ),
        (
            "$ lspci -k\n"
            "01:00.0 VGA compatible controller: NVIDIA Corporation GP107\n"
            "\tKernel driver in use: nouveau\n"
            "$ nvidia-smi\n"
            "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver"
        ),
        (
            "Error! Bad return status for module build on kernel: 6.11.0-17-generic (x86_64)\n"
            "Consult /var/lib/dkms/nvidia/535.183.01/build/make.log for more information."
        ),
        (
            "dkms status\n"
            "nvidia/550.54.14: added\n"
            "uname -r\n"
            "6.5.0-28-generic\n"
            "nvidia-smi fails: couldn't communicate with the NVIDIA driver"
        ),
        (
            "modprobe: ERROR: could not insert 'nvidia': No such device\n"
            "[   12.1] NVRM: GPU 0000:01:00.0 is already bound to nouveau."
        ),
        (
            "ERROR: The Nouveau kernel driver is currently in use by your system. This driver is "
            "incompatible with the NVIDIA driver, and must be disabled before proceeding."
        ),
        "modprobe: ERROR: could not insert 'nvidia': Exec format error",
        (
            "nvidia-persistenced failed to initialize. Check syslog for more details.\n"
            "modprobe nvidia: FATAL: Module nvidia not found."
        ),
        (
            "nvidia: module verification failed: signature and/or required key missing\n"
            "modprobe: ERROR: could not insert 'nvidia': Required key not available"
        ),
        ("Loading of module with unavailable key is rejected\n nvidia-smi: couldn't communicate"),
        (
            "ERROR: Unable to load the kernel module 'nvidia.ko'.  This happens most frequently when this "
            "kernel module was built against the wrong or improperly configured kernel sources"
        ),
        (
            'ERROR: An error occurred while performing the step: "Building kernel modules". See '
            "/var/log/nvidia-installer.log for details."
        ),
        ("akmods: Building and installing nvidia-kmod [FAILED]\nnvidia-smi has failed"),
        (
            "dkms: Error! Your kernel headers for kernel 6.1.0-18-amd64 cannot be found at "
            "/lib/modules/6.1.0-18-amd64/build\n"
            "nvidia"
        ),
    ],
    "driver-too-old": [
        (
            "UserWarning: CUDA initialization: The NVIDIA driver on your system is too old (found version "
            "11040). Please update your GPU driver"
        ),
        (
            "CUDA driver version is insufficient for CUDA runtime version\n"
            "| NVIDIA-SMI 470.82.01    Driver Version: 470.82.01    CUDA Version: 11.4     |"
        ),
        "cudaErrorInsufficientDriver: CUDA driver version is insufficient for CUDA runtime version",
        "RuntimeError: The NVIDIA driver on your system is too old (found version 12020).",
        (
            "W external/xla/xla/service/platform_util.cc:198] unable to create StreamExecutor for CUDA:0: "
            "CUDA driver version is insufficient; jaxlib cuda12; Driver Version: 450.80.02"
        ),
        (
            "RuntimeError: CUDA error: the provided PTX was compiled with an unsupported toolchain.\n"
            "Driver Version: 525.60.13    CUDA Version: 12.0\n"
            "torch 2.2 cu122 extension built with nvcc 12.4"
        ),
        (
            "numba.cuda.cudadrv.driver.LinkerError: [222] Call to cuLinkAddData results in "
            "CUDA_ERROR_UNSUPPORTED_PTX_VERSION\n"
            "ptxas application ptx input, line 9; fatal   : Unsupported .version 8.4; current version is "
            "'8.2'"
        ),
        (
            "ggml_cuda_init: failed to initialize CUDA: CUDA driver version is insufficient for CUDA "
            "runtime version\n"
            "llama.cpp"
        ),
        (
            "cupy_backends.cuda.api.runtime.CUDARuntimeError: cudaErrorInsufficientDriver: CUDA driver "
            "version is insufficient for CUDA runtime version"
        ),
        (
            "cudaErrorCallRequiresNewerDriver: function requires newer CUDA driver / API call is not "
            "supported in the installed CUDA driver"
        ),
        (
            "RuntimeError: CUDA error: API call is not supported in the installed CUDA driver\n"
            " driver 520, torch 2.5 cu124"
        ),
        "The NVIDIA driver on your system is too old (found version 10010). onnxruntime",
        "OptiX error: OPTIX_ERROR_UNSUPPORTED_ABI_VERSION; driver 470",
        ("numba.cuda.cudadrv.driver.CudaAPIError: [35] Call to cuInit... CUDA driver version is insufficient"),
    ],
    "extension-abi-mismatch": [
        (
            "ImportError: /home/u/.local/lib/python3.10/site-packages/flash_attn_2_cuda.cpython-310-x86_64-li"
            "nux-gnu.so: undefined symbol: _ZN3c104cuda9SetDeviceEi"
        ),
        ("ImportError: DLL load failed while importing flash_attn_2_cuda: The specified procedure could not be found."),
        (
            "ImportError: /usr/lib/python3/dist-packages/mmcv/_ext.cpython-38-x86_64-linux-gnu.so: "
            "undefined symbol: _ZNK2at6Tensor7reshapeEN3c108ArrayRefIlEE"
        ),
        (
            "WARNING[XFORMERS]: xFormers can't load C++/CUDA extensions. xFormers was built for:\n"
            "    PyTorch 2.1.0+cu121 with CUDA 1201 (you have 2.0.1+cu118)\n"
            "    Python  3.10.11 (you have 3.10.6)\n"
            "  Please reinstall xformers"
        ),
        (
            "OSError: /home/x/venv/lib/python3.9/site-packages/torch_scatter/_version_cuda.so: undefined "
            "symbol: _ZN5torch3jit17parseSchemaOrNameE"
        ),
        (
            "RuntimeError: Detected that PyTorch and torch_sparse were compiled with different CUDA "
            "versions. PyTorch has CUDA version 11.8 and torch_sparse has CUDA version 11.7. Please "
            "reinstall the torch_sparse that matches your PyTorch install."
        ),
        (
            "ImportError: libtorch_cuda_cu.so: cannot open shared object file: No such file or directory\n"
            "  from detectron2 import _C"
        ),
        ("ImportError: libc10.so: cannot open shared object file: No such file or directory   (import torch_cluster)"),
        (
            "ImportError: cannot import name 'flash_attn_2_cuda': undefined symbol: "
            "_ZN3c105ErrorC2ENS_14SourceLocationESs"
        ),
        (
            "apex: ImportError: fused_layer_norm_cuda.cpython-310-x86_64-linux-gnu.so: undefined symbol: "
            "_ZN3c106detail14torchCheckFailEPKcS2_jRKSs"
        ),
        (
            "RuntimeError: Ninja is required; ImportError: "
            "/root/.cache/torch_extensions/py310_cu117/fused/fused.so: undefined symbol"
        ),
        (
            "ImportError: exllamav2_ext.cpython-311-x86_64-linux-gnu.so: undefined symbol: "
            "_ZN2at4_ops5zeros4callEN3c108ArrayRefINS2_6SymIntEEE"
        ),
        (
            "No module named 'torch_scatter._scatter_cuda'; OSError: torch_scatter/_scatter_cuda.so: "
            "undefined symbol: _ZNR5torch7Library4_defE"
        ),
        "RuntimeError: pytorch3d: Not compiled with GPU support",
        "RuntimeError: Not compiled with GPU support (detectron2 deform_conv)",
        ("nms_impl: implementation for device cuda:0 not found.\nmmcv"),
        "RuntimeError: SigmoidFocalLoss is not compiled with GPU support",
    ],
    "fabric-manager-not-running": [
        (
            "RuntimeError: Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions "
            "before calling NumCudaDevices() that might have already set an error? Error 802: system not "
            "yet initialized"
        ),
        (
            "fabricmanager: fabric manager NVIDIA GPU driver interface version 535.161.07 don't match with "
            "driver version 535.183.01. Please update with matching NVIDIA driver package."
        ),
        (
            "Failed to start NVIDIA fabric manager service.\n"
            "nvidia-fabricmanager.service: Control process exited, code=exited, status=1/FAILURE"
        ),
        "cudaGetDeviceCount failed 802; nvidia-smi topo -m shows NVSwitch; DGX H100",
        ("CUDA_ERROR_SYSTEM_NOT_READY: system not yet initialized\n8x H100 SXM"),
    ],
    "fp16-nan": [
        (
            "modules.devices.NansException: A tensor with all NaNs was produced in Unet. This could be "
            "either because there's not enough precision to represent the picture, or because your video "
            'card does not support half type. Try setting the "Upcast cross attention layer to float32" '
            "option or using the --no-half commandline argument to fix this."
        ),
        (
            "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 1.52587890625e-05\n"
            "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 7.62939453125e-06\n"
            "loss: nan"
        ),
        ("RuntimeError: probability tensor contains either `inf`, `nan` or element < 0 when running in float16"),
        "loss is nan, stopping training with --fp16; bf16 is fine",
        (
            "RuntimeWarning: invalid value encountered in cast images = (images * "
            "255).round().astype('uint8') ; black image, fp16, GTX 1660"
        ),
    ],
    "gpu-hardware-xid-ecc": [
        "NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
        "Unable to determine the device handle for GPU0000:01:00.0: Unknown Error",
        "RuntimeError: CUDA error: uncorrectable ECC error encountered",
        (
            "Unable to determine the device handle for GPU 0000:65:00.0: GPU is lost.  Reboot the system to "
            "recover this GPU"
        ),
        ("NVRM: Xid (PCI:0000:41:00): 48, pid=2231, An uncorrectable double bit error (DBE) has been detected on GPU"),
        (
            "RmInitAdapter failed! (0x26:0xffff:1266)\n"
            "NVRM: GPU 0000:01:00.0: rm_init_adapter failed, device minor number 0"
        ),
        ("pcieport 0000:00:01.0: AER: Corrected error received: 0000:01:00.0\nNVRM: Xid (PCI:0000:01:00): 79"),
        "NVRM: Xid (PCI:0000:0a:00): 62, pid=1234, 2144(2c28) 00000000 00000000",
        "nvmlDeviceGetHandleByIndex failed: GPU is lost",
        (
            "cuda runtime error (77) : an illegal memory access was encountered; dmesg: NVRM: Xid "
            "(PCI:0000:02:00): 48, Double Bit ECC Error"
        ),
    ],
    "gpu-throttled": [
        (
            "    Clocks Throttle Reasons\n"
            "        SW Thermal Slowdown               : Active\n"
            "        HW Thermal Slowdown               : Active\n"
            "  GPU Current Temp 92 C"
        ),
        "clocks_event_reasons.hw_power_brake_slowdown: Active; the RTX A6000 stays at 300 MHz",
        "nvidia-smi -q -d PERFORMANCE: SW Power Cap: Active, HW Thermal Slowdown: Active; temp 94C",
    ],
    "host-compiler-too-new": [
        (
            "#error -- unsupported GNU version! gcc versions later than 12 are not supported! The nvcc flag "
            "'-allow-unsupported-compiler' can be used"
        ),
        (
            "#error:  -- unsupported Microsoft Visual Studio version! Only the versions between 2017 and "
            "2022 (inclusive) are supported!"
        ),
        "/usr/include/c++/13/type_traits: error: parameter packs not expanded with '...' nvcc 11.5",
        ("error: #error -- unsupported clang version! clang version must be less than 15 and greater than 3.2"),
        (
            "RuntimeError: The current installed version of g++ (13.2.0) is greater than the maximum "
            "required version by CUDA 11.8. Please make sure to use an adequate version of g++ (>=6.0.0, "
            "<12.0)."
        ),
        ("STL1002: Unexpected compiler version, expected CUDA 12.4 or newer.\n static_assert failed yvals_core.h"),
        (
            "/usr/include/x86_64-linux-gnu/bits/mathcalls.h(79): error: exception specification is "
            'incompatible with that of previous function "cospi" (CUDA 12.4, glibc 2.41)'
        ),
    ],
    "jax-cpu-build": [
        (
            "WARNING:absl:No GPU/TPU found, falling back to CPU. (Set TF_CPP_MIN_LOG_LEVEL=0 and rerun for "
            "more info.)\n"
            "jaxlib 0.4.13\n"
            "nvidia-smi RTX 3090"
        ),
        (
            "An NVIDIA GPU may be present on this machine, but a CUDA-enabled jaxlib is not installed. "
            "Falling back to cpu."
        ),
        (
            "CUDA backend failed to initialize: Unable to load CUDA. Is it installed? (Set "
            "TF_CPP_MIN_LOG_LEVEL=0 and rerun for more info.) jaxlib 0.4.20 (no cuda plugin)"
        ),
        "jax.devices() [CpuDevice(id=0)] nvidia-smi RTX A6000",
    ],
    "libcuda-not-on-linker-path": [
        ("/usr/bin/ld: cannot find -lcuda: No such file or directory\ncollect2: error: ld returned 1 exit status"),
        (
            "AssertionError: libcuda.so cannot found!\n"
            "Possible files are located at ['/usr/lib/x86_64-linux-gnu/libcuda.so.1'].Please create a "
            "symlink of libcuda.so to any of the files."
        ),
        (
            "numba.cuda.cudadrv.error.CudaSupportError: Error at driver init: CUDA driver library cannot be "
            "found. nvidia-smi shows RTX 2080, driver 535"
        ),
        (
            "OSError: libcuda.so.1: cannot open shared object file: No such file or directory\n"
            "nvidia-smi works, driver 550.54"
        ),
        ("triton: /usr/bin/ld: cannot find -lcuda\n inductor"),
        ("pycuda._driver ImportError: libcuda.so.1: cannot open shared object file; nvidia-smi shows RTX 3070"),
    ],
    "mig-misconfigured": [
        (
            "nvidia-smi\n"
            "|   0  NVIDIA A100-SXM4-40GB     On  | 00000000:00:04.0 Off |                   On |\n"
            "| MIG devices:  No MIG devices found\n"
            "torch.cuda.is_available() False"
        ),
        (
            "Unable to create a GPU instance on GPU  0 using profile 19: Insufficient Resources\n"
            "Failed to create GPU instances: Insufficient Resources"
        ),
        (
            "Warning: persistence mode is disabled on device. MIG mode is in pending enable state for GPU "
            "00000000:07:00.0:In use by another client"
        ),
    ],
    "mps-issues": [
        (
            "TypeError: Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support "
            "float64. Please use float32 instead."
        ),
        ("RuntimeError: MPS backend is supported on MacOS 12.3+. Current OS version can be queried using `sw_vers`"),
        (
            "error: 'mps.add' op requires the same element type for all operands and results\n"
            "LLVM ERROR: Failed to infer result type(s)."
        ),
        "RuntimeError: Conv3D is not supported on MPS",
        ("AssertionError: Torch not compiled with CUDA enabled\nMacBook M2"),
        "RuntimeError: Placeholder storage has not been allocated on MPS device!",
        "BFloat16 is not supported on MPS",
        ("loc(\"mps_add\"): error: input types 'tensor<1x1280xf32>' and 'tensor<*xf16>' are not broadcast compatible"),
    ],
    "mps-op-not-implemented": [
        (
            "NotImplementedError: The operator 'aten::_upsample_bicubic2d_aa.out' is not currently "
            "implemented for the MPS device."
        ),
        (
            "NotImplementedError: The operator 'aten::linalg_qr.out' is not currently implemented for the "
            "MPS device. If you want this op to be added"
        ),
    ],
    "nccl-p2p-problem": [
        (
            "torch.distributed.DistBackendError: NCCL error ... unhandled cuda error\n"
            "ncclUnhandledCudaError: Call to CUDA function failed.\n"
            "Last error:\n"
            "Cuda failure 'peer access is not supported between these two devices'"
        ),
        (
            "RTX 4000 series doesn't support faster communication broadband via P2P or IB. Please set "
            '`NCCL_P2P_DISABLE="1"` and `NCCL_IB_DISABLE="1"`\n'
            "NotImplementedError: Using RTX 4000 series doesn't support faster communication broadband via "
            "P2P or IB."
        ),
        (
            "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, OpType=ALLREDUCE, NumelIn=1, "
            "Timeout(ms)=1800000) ran for 1800324 milliseconds before timing out.\n"
            "2x RTX A6000 AMD EPYC, single GPU works"
        ),
        ("NCCL WARN Cuda failure 'an illegal memory access was encountered'\nset NCCL_P2P_DISABLE=1 makes it work"),
        ("RuntimeError: CUDA error: peer mapping resources exhausted\n16 GPUs in one VM"),
        (
            "p2pBandwidthLatencyTest hangs, simpleP2P: Verification error @ element 0: val = nan, ref = "
            "0.000000\n"
            "Test failed!"
        ),
        (
            "Device=0 CAN Access Peer Device=1 ... Error checking: mismatch\n"
            "IOMMU is enabled: dmesg AMD-Vi: Event logged [IO_PAGE_FAULT device=0b:00.0]\n"
            " multi GPU training wrong loss"
        ),
    ],
    "no-nvidia-gpu": [
        (
            "RuntimeError: No CUDA GPUs are available\n"
            "lspci | grep VGA\n"
            "00:02.0 VGA compatible controller: Intel Corporation UHD Graphics 630"
        ),
        "RuntimeError: Found no NVIDIA driver on your system. I have Intel(R) UHD Graphics 620",
    ],
    "nvidia-container-toolkit-missing": [
        ('docker: Error response from daemon: could not select device driver "" with capabilities: [[gpu]].'),
        "docker: Error response from daemon: Unknown runtime specified nvidia.",
        "Error: setting up CDI devices: unresolvable CDI devices nvidia.com/gpu=all",
        'exec: "nvidia-container-runtime-hook": executable file not found in $PATH',
        "Error response from daemon: unknown or invalid runtime name: nvidia",
        (
            "OCI runtime create failed: unable to retrieve OCI runtime error: exec: "
            '"nvidia-container-runtime": executable file not found in $PATH: unknown.'
        ),
        (
            "nvidia-container-cli: initialization error: load library failed: libnvidia-ml.so.1: cannot "
            "open shared object file: no such file or directory: unknown."
        ),
        (
            "Failed to create pod sandbox: rpc error: code = Unknown desc = failed to get sandbox runtime: "
            'no runtime for "nvidia" is configured'
        ),
        "failed to inject CDI devices: unresolvable CDI devices management.nvidia.com/gpu=all",
        "0/3 nodes are available: 3 Insufficient nvidia.com/gpu. preemption: 0/3 nodes are available",
        (
            "k8s-device-plugin: Failed to initialize NVML: could not load NVML library. If this is a GPU "
            "node, did you set the docker default runtime to `nvidia`?"
        ),
        (
            "Incompatible strategy detected auto. If this is a GPU node, did you configure the NVIDIA "
            "Container Toolkit?\n"
            "No devices found. Waiting indefinitely."
        ),
    ],
    "open-kernel-module-unsupported-gpu": [
        (
            "NVRM: The NVIDIA GPU 0000:01:00.0 (PCI ID: 10de:1b06) installed in this system is not "
            "supported by open nvidia.ko because it does not include the required GPU System Processor "
            "(GSP)."
        ),
        (
            "NVRM: GPU 0000:01:00.0: RmInitAdapter failed! nvidia-open, GTX 1070\n"
            "NVRM: not supported by open nvidia.ko because it does not include the required GPU System "
            "Processor (GSP)"
        ),
    ],
    "out-of-memory": [
        (
            "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 8.00 GiB "
            "total capacity; 6.9 GiB already allocated; 0 bytes free)"
        ),
        "RuntimeError: cuDNN error: CUDNN_STATUS_ALLOC_FAILED",
        (
            "ResourceExhaustedError: OOM when allocating tensor with shape[64,512,56,56] and type float on "
            "/job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc"
        ),
        (
            "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 17179869184 bytes.\n"
            " jaxlib.xla_extension.XlaRuntimeError"
        ),
        (
            "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 5120.00 MiB on device 0: cudaMalloc "
            "failed: out of memory"
        ),
        (
            "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` "
            "when initializing the engine."
        ),
        (
            "cupy.cuda.memory.OutOfMemoryError: Out of memory allocating 8,000,000,000 bytes (allocated so "
            "far: 1,024 bytes)."
        ),
        "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "torch.cuda.OutOfMemoryError: HIP out of memory. Tried to allocate 20.00 MiB",
        (
            "RuntimeError: [enforce fail at alloc_cpu.cpp:114] data. DefaultCPUAllocator: not enough "
            "memory: you tried to allocate 1073741824 bytes."
        ),
        (
            "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Failed to allocate request for "
            "2.00GiB on device ordinal 0"
        ),
        "CUDA error 2 at ggml-cuda.cu:6301: out of memory",
        ("Not enough memory, use lower resolution (max approx. 640x640). Need: 3.1GB free, Have:2.3GB free"),
        "paddle: Out of memory error on GPU 0. Cannot allocate 2.0GB memory on GPU 0",
        (
            "ValueError: Free memory on device (5.5/23.68 GiB) on startup is less than desired GPU memory "
            "utilization (0.9, 21.31 GiB)."
        ),
        (
            "xgboost: Memory allocation error on worker 0: [21:01:25] std::bad_alloc: "
            "cudaErrorMemoryAllocation: out of memory"
        ),
        ("cudaErrorMemoryAllocation out of memory (rmm) MemoryError: std::bad_alloc: out_of_memory: CUDA error"),
        (
            "llama_kv_cache_init: failed to allocate buffer; ggml_gallocr_reserve_n: failed to allocate "
            "CUDA0 buffer of size 8589934592"
        ),
    ],
    "pynvml-deprecated": [
        (
            "FutureWarning: The pynvml package is deprecated. Please install nvidia-ml-py instead. If you "
            "did not install pynvml directly, please report this to the maintainers of the package that "
            "installed pynvml for you."
        ),
        "AttributeError: module 'pynvml' has no attribute 'nvmlDeviceGetComputeRunningProcesses_v2'",
        ("ImportError: cannot import name 'nvmlDeviceGetGpcClkVfOffset' from 'pynvml'\n pip show pynvml 8.0.4"),
        (
            "torch/cuda/__init__.py: FutureWarning: The pynvml package is deprecated. Please install "
            "nvidia-ml-py instead."
        ),
    ],
    "python-version-no-wheel": [
        (
            "python --version\n"
            "Python 3.13.0\n"
            "pip install torch==2.3.1\n"
            "ERROR: Could not find a version that satisfies the requirement torch==2.3.1 (from versions: "
            "2.5.0, 2.5.1)\n"
            "ERROR: No matching distribution found for torch==2.3.1"
        ),
        (
            "ERROR: torch-2.0.1+cu118-cp310-cp310-win_amd64.whl is not a supported wheel on this platform.\n"
            "Python 3.12.1"
        ),
        (
            "error: Distribution `torch==2.2.2 @ registry+https://x` can't be installed because it doesn't "
            "have a source distribution or wheel for the current platform\n"
            "hint: You're using CPython 3.13 (`cp313`), but `torch` (v2.2.2) only has wheels with the "
            "following Python ABI tags: `cp310`, `cp311`, `cp312`"
        ),
        (
            "ERROR: Could not find a version that satisfies the requirement torch (from versions: none)\n"
            "ERROR: No matching distribution found for torch\n"
            "Python 3.9.13 (tags/v3.9.13) [MSC v.1929 32 bit (Intel)] on win32"
        ),
        (
            "Because only the following versions of torch are available... requires-python >=3.14: "
            "torch==2.6.0 has no wheels with a matching Python ABI tag (e.g., `cp314`)"
        ),
    ],
    "rocm-build-on-nvidia": [
        "torch.__version__ 2.1.0+rocm5.6, RTX 3060, torch.cuda.is_available() False",
        ("  libamdhip64.so: cannot open shared object file\n torch 2.0.1+rocm5.4.2\n nvidia-smi: GeForce RTX 3080"),
    ],
    "rocm-unsupported-gfx": [
        ('"hipErrorNoBinaryForGpu: Unable to find code object for all current devices!"\ngfx1031'),
        (
            "rocBLAS error: Cannot read /opt/rocm/lib/rocblas/library/TensileLibrary.dat: Illegal seek for "
            "GPU arch : gfx1032"
        ),
        ("RuntimeError: HIP error: invalid device function\nRX 5700 XT"),
        (
            "amdgpu is not supported (supported types:[gfx1030 gfx1100 gfx1101 gfx1102 gfx906 gfx908 gfx90a "
            "gfx942]) gpu_type=gfx1010\n"
            " ollama"
        ),
        (
            "Ignoring visible gpu device (device: 0, name: AMD Radeon RX 6700 XT, pci bus id: 0000:03:00.0) "
            "with AMDGPU version : gfx1031. The supported AMDGPU versions are gfx1030, gfx900, gfx906, "
            "gfx908, gfx90a."
        ),
        "HSA_STATUS_ERROR_INVALID_ISA: The instruction set architecture is invalid. code: 0x100f",
        ("rocBLAS error: Could not initialize Tensile host: No devices found\nRX 6600"),
        (
            "RuntimeError: HIP error: the operation cannot be performed in the present state / "
            "hipErrorInvalidDeviceFunction gfx90c"
        ),
        ('level=WARN source=amd_linux.go msg="amdgpu is not supported" gpu=0 gpu_type=gfx803 library=/opt/rocm/lib'),
    ],
    "runs-on-cpu": [
        ("ComfyUI: Total VRAM 32000 MB, total RAM 32000 MB\nDevice: cpu\nRTX 3060"),
        (
            "lightning_fabric.utilities.exceptions.MisconfigurationException: CUDAAccelerator can not run "
            "on your system since the accelerator is not available. The following accelerator(s) is "
            "available and can be passed into `accelerator` argument of `Trainer`: ['cpu']."
        ),
        (
            'time=2024-05-01 level=INFO source=gpu.go:324 msg="no compatible GPUs were discovered"\n'
            "ollama on RTX 2060, ubuntu"
        ),
        (
            "warning: not compiled with GPU offload support, --n-gpu-layers option will be ignored\n"
            "llama-server, RTX 3060"
        ),
        (
            "UserWarning: Specified provider 'CUDAExecutionProvider' is not in available provider "
            "names.Available providers: 'AzureExecutionProvider, CPUExecutionProvider'\n"
            "RTX 3070"
        ),
        ("xgboost.core.XGBoostError: XGBoost version not compiled with GPU support.\nRTX 3080"),
        (
            "LightGBMError: GPU Tree Learner was not enabled in this build.\n"
            "Please recompile with CMake option -DUSE_GPU=1"
        ),
        ("Using CPU. Note: This module is much faster with a GPU.\neasyocr RTX 3050"),
        ("ValueError: This CTranslate2 package was not compiled with CUDA support\nRTX 4070"),
        ("dlib.DLIB_USE_CUDA False\nRTX 2070"),
        ("cv2.error: The library is compiled without CUDA support in function 'throw_no_cuda'\nRTX 3060"),
        "[LightGBM] [Fatal] CUDA Tree Learner was not enabled in this build.",
        ("PaddlePaddle: Cannot use GPU, because you have installed CPU version PaddlePaddle.\nRTX 3060"),
        ("whisper_init_with_params_no_state: use gpu = 0\nwhisper_backend_init_gpu: no GPU found\nRTX 3050"),
        (
            "llama_cpp: llm_load_tensors: CPU buffer size = 4096 MiB, offloaded 0/33 layers to GPU; RTX "
            "3060, n_gpu_layers=33"
        ),
    ],
    "shm-too-small": [
        ("RuntimeError: unable to write to file </torch_1123_3344>\nunable to open shared memory object"),
        (
            "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared "
            "memory (shm)."
        ),
        (
            "NOTE: The SHMEM allocation limit is set to the default of 64MB.  This may be\n"
            "   insufficient for PyTorch.  \n"
            "DataLoader worker (pid 99) is killed by signal: Bus error."
        ),
        (
            "NCCL WARN Call to posix_fallocate failed: No space left on device\n"
            "NCCL WARN Error while creating shared memory segment /dev/shm/nccl-Xyz (size 9637888)"
        ),
        ("OSError: [Errno 28] No space left on device: '/dev/shm/...'\n multiprocessing DataLoader in docker"),
        ("RuntimeError: DataLoader worker (pid(s) 231, 267) exited unexpectedly\ndocker, /dev/shm 64M"),
        ("ray: The object store is using /tmp instead of /dev/shm because /dev/shm has only 67108864 bytes available."),
    ],
    "stale-docker-image": [
        ("I changed requirements.txt (torch cu121) and docker compose up still has the old torch; no --build"),
    ],
    "tensorflow-no-gpu-build": [
        (
            "Windows 11, tensorflow 2.15.0\n"
            ">>> tf.config.list_physical_devices('GPU')\n"
            "[]\n"
            "RTX 3070, CUDA 11.8, cudnn 8.6"
        ),
        ("tf.test.is_built_with_cuda()\nFalse\nRTX 2070"),
        (
            "This TensorFlow binary is optimized to use available CPU instructions\n"
            "TF 2.16.1 on Windows 11 with RTX 4080: Num GPUs Available: 0"
        ),
        (
            "ERROR: Could not find a version that satisfies the requirement tensorflow-gpu==2.13.0 (from "
            "versions: 2.8.0, 2.12.0)"
        ),
        "The tensorflow-gpu package has been removed! Please install tensorflow instead.",
    ],
    "tf32-precision-surprise": [
        (
            "torch.matmul of float32 on A100 vs CPU: max abs diff 0.003; on V100 the difference is 1e-6. "
            "torch.backends.cuda.matmul.allow_tf32 = True"
        ),
    ],
    "toolkit-mismatch-building-extension": [
        (
            "RuntimeError: \n"
            "The detected CUDA version (12.2) mismatches the version that was used to compile\n"
            "PyTorch (11.7). Please make sure to use the same CUDA versions."
        ),
        "OSError: CUDA_HOME environment variable is not set. Please set it to your CUDA install root.",
        (
            "FileNotFoundError: [Errno 2] No such file or directory: '/usr/local/cuda/bin/nvcc'\n"
            " building deformable attention"
        ),
        "nvcc fatal   : Unsupported gpu architecture 'compute_89'",
        (
            'raise ValueError(f"Unknown CUDA arch ({arch}) or GPU not supported")\n'
            "ValueError: Unknown CUDA arch (12.0) or GPU not supported"
        ),
        (
            "deepspeed.ops.op_builder.builder.CUDAMismatchException: >- DeepSpeed Op Builder: Installed "
            "CUDA version 12.1 does not match the version torch was compiled with 11.8, unable to compile "
            "cuda/cpp extensions without a matching cuda version."
        ),
        (
            "RuntimeError: FlashAttention is only supported on CUDA 11.7 and above.  Note: make sure nvcc "
            "has a supported version by running nvcc -V."
        ),
        (
            "RuntimeError: Cuda extensions are being compiled with a version of Cuda that does not match "
            "the version used to compile Pytorch binaries.  Pytorch binaries were compiled with Cuda 11.8."
        ),
        (
            "NameError: name '_get_cuda_bare_metal_version' / nvcc was not found.  Are you sure your "
            "environment has nvcc available?"
        ),
        ("CMake Error: Could not find nvcc, please set CUDAToolkit_ROOT.\n building llama-cpp-python with cuda"),
        ("CMake Error: No CUDA toolset found.\nVisual Studio 2022"),
        "CMake Error at CMakeDetermineCompilerId: Failed to detect a default CUDA architecture.",
        ("fatal error: cuda_runtime.h: No such file or directory\n compilation of extension"),
        (
            "fatal error: cusparse.h: No such file or directory\n"
            " #include <cusparse.h>\n"
            " building extension with conda nvcc"
        ),
    ],
    "torch-cpu-build": [
        ("AssertionError: Torch not compiled with CUDA enabled\nGPU: NVIDIA GeForce RTX 3060"),
        (
            "RuntimeError: Attempting to deserialize object on a CUDA device but torch.cuda.is_available() "
            "is False. torch 2.3.0+cpu. RTX 3070, Ubuntu."
        ),
        (
            "ValueError: Invalid CUDA 'device=0' requested. Use 'device=cpu' or pass valid CUDA device(s) "
            "if available, i.e. 'device=0' or 'device=0,1,2,3' for Multi-GPU.\n"
            "\n"
            "torch.cuda.is_available(): False\n"
            "torch.cuda.device_count(): 0\n"
            "os.environ['CUDA_VISIBLE_DEVICES']: None\n"
            "See https://pytorch.org/get-started/locally/ for up-to-date torch install instructions if no "
            "CUDA devices are seen by torch.\n"
            "Ultralytics YOLOv8.0.200 Python-3.10.9 torch-2.1.0+cpu \n"
            "I have an RTX 2060"
        ),
        (
            "RuntimeError: \"LayerNormKernelImpl\" not implemented for 'Half'\n"
            "torch 2.0.1+cpu, GeForce GTX 1660, windows 11"
        ),
        (
            "UserWarning: User provided device_type of 'cuda', but CUDA is not available. Disabling\n"
            "  warnings.warn('User provided device_type of \\'cuda\\', but CUDA is not available. Disabling')\n"
            "torch==2.2.0+cpu; RTX 4060 laptop"
        ),
        "DefaultCPUAllocator: not enough memory: you tried to allocate; torch 2.2.0+cpu; I have RTX 3060",
        "ImportError: cannot import name '_cuda_getCurrentRawStream' from 'torch._C'",
        "AttributeError: module 'torch._C' has no attribute '_cuda_setDevice'",
        "AttributeError: module 'torch._C' has no attribute '_cuda_getDeviceCount'",
        "torch.version.cuda: None, nvidia-smi: RTX 2080 Ti",
        "RuntimeError: PyTorch was compiled without CUDA support; RTX 3090",
        (
            "pip freeze: torch @ https://download.pytorch.org/whl/cpu/torch-2.3.0%2Bcpu-cp311-cp311-linux_x86"
            "_64.whl ; RTX 3080 not used"
        ),
    ],
    "torch-no-kernel-for-device": [
        (
            "RuntimeError: CUDA error: no kernel image is available for execution on the device\n"
            "CUDA kernel errors might be asynchronously reported at some other API call\n"
            "NVIDIA GeForce RTX 5080"
        ),
        (
            "NVIDIA GeForce RTX 5090 with CUDA capability sm_120 is not compatible with the current PyTorch "
            "installation.\n"
            "The current PyTorch install supports CUDA capabilities sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 "
            "sm_90."
        ),
        (
            "The current PyTorch install supports CUDA capabilities sm_37 sm_50 sm_60 sm_70.\n"
            "If you want to use the NVIDIA GeForce RTX 3090 GPU with PyTorch, please check the instructions "
            "at https://pytorch.org/get-started/locally/"
        ),
        (
            "    Found GPU0 Tesla K80 which is of cuda capability 3.7.\n"
            "    PyTorch no longer supports this GPU because it is too old.\n"
            "    The minimum cuda capability supported by this library is 5.0."
        ),
        (
            "ptxas fatal   : Value 'sm_120' is not defined for option 'gpu-name'\n"
            "triton.runtime.errors torch 2.6.0+cu124 RTX 5070 Ti"
        ),
        ("FATAL: kernel `fmha_cutlassF_f16_aligned_64x64_rf_sm80` is for sm80-sm100, but was built for sm37"),
        ("RuntimeError: FlashAttention only supports Ampere GPUs or newer.\nTesla T4"),
        (
            "triton: PassManager::run failed\n"
            "RuntimeError: Triton Error [CUDA]: device kernel image is invalid\n"
            "RTX 5090"
        ),
        ("LLVM ERROR: Cannot select: intrinsic %llvm.nvvm.shfl.sync.bfly.i32\nGPU Tesla K80"),
        "sgl_kernel: ImportError: Could not load any common_ops library for compute capability 120",
        (
            "vllm: RuntimeError: Error Internal no kernel image; The quantization method gptq_marlin is not "
            "supported for the current GPU. Minimum capability: 80. Current capability: 75."
        ),
    ],
    "torch-not-installed": [
        (
            "Traceback (most recent call last):\n"
            '  File "C:\\AI\\app.py", line 3, in <module>\n'
            "    import torch\n"
            "ModuleNotFoundError: No module named 'torch'"
        ),
        (
            "None of PyTorch, TensorFlow >= 2.0, or Flax have been found. Models won't be available and "
            "only tokenizers, configuration and file/data utilities can be used."
        ),
        "jupyter: ModuleNotFoundError: No module named 'torch'; terminal python -c 'import torch' works",
    ],
    "torchvision-mismatch": [
        "RuntimeError: operator torchvision::nms does not exist",
        (
            "NotImplementedError: Could not run 'torchvision::nms' with arguments from the 'CUDA' backend. "
            "This could be because the operator doesn't exist for this backend"
        ),
        (
            "RuntimeError: Detected that PyTorch and torchvision were compiled with different CUDA "
            "versions. PyTorch has CUDA Version=11.7 and torchvision has CUDA Version=11.8. Please "
            "reinstall the torchvision that matches your PyTorch install."
        ),
        (
            "RuntimeError: Detected that PyTorch and TorchAudio were compiled with different CUDA versions. "
            "PyTorch has CUDA version 12.4 whereas TorchAudio has CUDA version 12.1. Please install the "
            "TorchAudio version that matches your PyTorch version."
        ),
        (
            "OSError: /opt/venv/lib/python3.10/site-packages/torchaudio/lib/libtorchaudio.so: undefined "
            "symbol: _ZNK5torch8autograd4Node4nameEv"
        ),
        (
            "AttributeError: partially initialized module 'torchvision' has no attribute 'extension' (most "
            "likely due to a circular import)"
        ),
        (
            "RuntimeError: Couldn't load custom C++ ops. This can happen if your PyTorch and torchvision "
            "versions are incompatible, or if you had errors while compiling torchvision from source."
        ),
        (
            "OSError: [WinError 127] The specified procedure could not be found. Error loading "
            '"C:\\Users\\me\\venv\\lib\\site-packages\\torchaudio\\lib\\libtorchaudio.pyd"'
        ),
        "ModuleNotFoundError: No module named 'torchvision.transforms.functional_tensor'",
        (
            "UserWarning: Failed to load image Python extension: 'libc10_cuda.so: cannot open shared object "
            "file'\n"
            "torchvision"
        ),
        "torchvision 0.15.2 requires torch==2.0.1, but you have torch 2.1.0+cu121 which is incompatible.",
        (
            "AttributeError: module 'torch.library' has no attribute 'register_fake'\n"
            '  File "torchvision/_meta_registrations.py"'
        ),
        "RuntimeError: Failed to import transformers.models... operator torchvision::nms does not exist",
        (
            "RuntimeError: Could not load libtorchcodec. Likely causes: 1. FFmpeg is not properly installed "
            "2. The PyTorch version (2.9.0+cu128) is not compatible with this version of TorchCodec."
        ),
    ],
    "wheel-index-wrong": [
        (
            "Looking in indexes: https://download.pytorch.org/whl/cu129\n"
            "ERROR: Could not find a version that satisfies the requirement torch==2.5.1 (from versions: "
            "2.8.0+cu129)"
        ),
        (
            "Looking in indexes: https://download.pytorch.org/whl/cu123\n"
            "ERROR: Could not find a version that satisfies the requirement torch (from versions: none)\n"
            "ERROR: No matching distribution found for torch"
        ),
        (
            "No solution found when resolving dependencies: Because there is no version of "
            "torch==2.4.0+cu124 and you require torch==2.4.0+cu124"
        ),
    ],
    "wsl-driver-problem": [
        (
            "nvidia-smi in WSL2\n"
            "Failed to initialize NVML: GPU access blocked by the operating system\n"
            "Failed to properly shut down NVML: GPU access blocked by the operating system"
        ),
        (
            "WSL2 Ubuntu: UserWarning: CUDA initialization: CUDA driver initialization failed, you might "
            "not have a CUDA gpu. \n"
            "Error 34: CUDA driver is a stub library"
        ),
        (
            "wsl -l -v\n"
            "  NAME      STATE           VERSION\n"
            "* Ubuntu    Running         1\n"
            "nvidia-smi: command not found. RTX 3080"
        ),
        ("nvidia-container-cli: initialization error: WSL environment detected but no adapters were found: unknown"),
        (
            "/sbin/ldconfig.real: /usr/lib/wsl/lib/libcuda.so.1 is not a symbolic link\n"
            "TensorFlow in WSL2: libcuda.so.1: cannot open shared object file"
        ),
        "WSL2: sudo apt install nvidia-driver-535, now nvidia-smi: Failed to initialize NVML: N/A",
        ("dxgkio_query_adapter_info: Ioctl failed: -22\nnvidia-smi not found in WSL"),
    ],
}


@pytest.mark.parametrize("check", MESSAGES)
def test_the_messages_of_a_check(check: str) -> None:
    first = {}
    for text in MESSAGES[check]:
        report = run_checks(own_checks(), read_texts([("report.txt", text.encode())]))
        first[text] = next(
            (found.check_id for found in report.findings if found.severity.name != "INFO"), report.verdict
        )
    assert first == dict.fromkeys(MESSAGES[check], check)
