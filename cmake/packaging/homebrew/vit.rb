# A formula for Homebrew on Linux, of the program and the shared library:
#   brew install --build-from-source --HEAD ./cmake/packaging/homebrew/vit.rb
# Not run: there was no Homebrew. A tap fills in the address, and the checksum of a release.
class Vit < Formula
  desc "Vision Transformers on CPUs with 2D axial rotary position embeddings"
  homepage "https://example.org/vit"
  license "MIT"
  head "https://example.org/vit.git", branch: "main"

  depends_on "boost" => :build
  depends_on "cli11" => :build
  depends_on "cmake" => :build
  depends_on "eigen" => :build
  depends_on "ninja" => :build
  depends_on "pkg-config" => :build
  depends_on "giflib"
  depends_on "highway"
  depends_on "icu4c"
  depends_on "jpeg-turbo"
  depends_on "libarchive"
  depends_on "libavif"
  depends_on "libpng"
  depends_on "libseccomp"
  depends_on "libtiff"
  depends_on :linux
  depends_on "little-cms2"
  depends_on "opencv"
  depends_on "openjpeg"
  depends_on "openssl@3"
  depends_on "webp"
  depends_on "zlib"

  def install
    system "cmake", "-S", ".", "-B", "build", "-G", "Ninja", "-DBUILD_SHARED_LIBS=ON", "-DVIT_BUILD_TESTS=OFF", *std_cmake_args
    system "cmake", "--build", "build"
    system "cmake", "--install", "build"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/vit --version") unless head?
    assert_match "model", shell_output("#{bin}/vit info")
  end
end
