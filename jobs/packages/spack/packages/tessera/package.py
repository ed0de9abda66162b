# Spack recipe for a checkout of this project (Spack 1.0 or later):
#
#   spack repo add jobs/packages/spack
#   spack env create --dir . && spack env activate .
#   spack develop --path "$PWD" tessera@0.1.0
#   spack add tessera +cuda cuda_arch=90 && spack install
from spack_repo.builtin.build_systems.cmake import CMakePackage
from spack_repo.builtin.build_systems.cuda import CudaPackage

from spack.package import *


class Tessera(CMakePackage, CudaPackage):
    """MPI radio-interferometric imager: visibilities (UVFITS, MeasurementSet) to FITS
    images and back."""

    version("0.1.0")

    variant("mpi", default=True, description="Several ranks")
    variant("openmp", default=True, description="Several threads a rank")
    variant("casacore", default=True, description="Read and write MeasurementSets")
    variant("hdf5", default=True, description="Read solutions of calibrations (h5parm)")

    depends_on("c", type="build")
    depends_on("cxx", type="build", when="+casacore")
    depends_on("cxx", type="build", when="+cuda")
    depends_on("cmake@3.20:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("fftw@3.3: precision=float,double")
    depends_on("cfitsio")
    depends_on("cminpack")
    depends_on("erfa")
    depends_on("jansson")
    depends_on("libpng")
    depends_on("mpi@3.1:", when="+mpi")
    depends_on("casacore@3.4:", when="+casacore")
    depends_on("hdf5@1.10:", when="+hdf5")
    depends_on("cmocka", type="test")

    conflicts("cuda_arch=none", when="+cuda", msg="name the GPUs: cuda_arch=80 or 90")

    def cmake_args(self):
        args = [
            self.define_from_variant("TESS_MPI", "mpi"),
            self.define_from_variant("TESS_OPENMP", "openmp"),
            self.define_from_variant("TESS_MS", "casacore"),
            self.define_from_variant("TESS_HDF5", "hdf5"),
            self.define_from_variant("TESS_CUDA", "cuda"),
            self.define("TESS_TESTS", self.run_tests),
        ]
        if self.spec.satisfies("+cuda"):
            architectures = ";".join(self.spec.variants["cuda_arch"].value)
            args.append(self.define("CMAKE_CUDA_ARCHITECTURES", architectures))
        return args
