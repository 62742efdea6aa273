# Sourced by the scripts in this folder and in ../ci. Installs Debian packages with the machine's own apt configuration.

# Prints the Debian mirror of this machine's apt, or Debian's public default.
debian_mirror() {
  local own
  own=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
    grep -m1 -E '/debian/?$' || true)
  printf '%s\n' "${own:-http://deb.debian.org/debian}"
}

# apt_install <package>…: installs packages quietly, as root. Updates the lists only if a package is unknown.
apt_install() {
  apt-cache show "$1" >/dev/null 2>&1 || apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

# trixie_apt <scratch folder> <apt-get arguments>: runs apt-get with the package lists of trixie, on any Debian release.
trixie_apt() {
  local scratch=$1
  shift
  mkdir -p "$scratch/lists/partial" "$scratch/archives/partial"
  printf 'deb %s trixie main\n' "$(debian_mirror)" >"$scratch/sources.list"
  apt-get -o Dir::Etc::sourcelist="$scratch/sources.list" -o Dir::Etc::sourceparts=- \
    -o Dir::State::lists="$scratch/lists" -o Dir::Cache="$scratch" -o Dir::State::status=/dev/null \
    -o APT::Sandbox::User=root "$@"
}
