"""AMD GPUs and their gfx targets."""

import re

from gpudoctor.data.rocm import gfx_target_of
from gpudoctor.model import AmdGpu, System
from gpudoctor.symptoms import Symptoms, of_kind, pasted


def amd_gpu(system: System, symptoms: Symptoms) -> AmdGpu:
    """Return the AMD GPU: gfx targets from ROCm, else from the product that a report names.

    Integrated graphics are also named next to NVIDIA GPUs, so only names with a known gfx target count.
    """
    said = pasted(symptoms)
    products = of_kind(said, "amd-gpu-named")
    targets = system.amd_gfx_targets
    fact = "system.amd_gfx_targets" if targets else ""
    for symptom in products:
        target = gfx_target_of(symptom.text) or gfx_target_of(f"RX {symptom.text}")
        if target is not None:
            return AmdGpu(
                targets=targets if targets is not None else (target,),
                fact=fact if targets is not None else symptom.fact,
                product=symptom.names.get("pci") or symptom.names.get("device") or symptom.text,
                product_fact=symptom.fact,
                product_target=target,
            )
    named = of_kind(said, "amd-gpu-reported") if not any(re.search(r"\d", symptom.text) for symptom in products) else ()
    return AmdGpu(targets=targets, fact=fact, said=named[0].fact if named else "")
