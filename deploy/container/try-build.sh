#!/usr/bin/env bash
# Builds the image from the Containerfile on base images made here from Debian packages and the installed Node, runs it with as few
# rights as possible, and checks what it answers: for machines that reach a Debian mirror and npm, but no registry of containers.
# Prints the sizes. Needs root, buildah, podman, mmdebstrap and curl.
#
#   BUILD_OPTIONS   more options of buildah, such as -v /path/to/ca.crt:/path/to/ca.crt:ro
#   BASE_ENV        a variable of the build base, such as NODE_EXTRA_CA_CERTS=/path/to/ca.crt
#   RUN_OPTIONS     more options of podman, such as --runtime /usr/sbin/runc --ulimit nofile=20000:20000
set -euo pipefail
cd "$(dirname "$0")/../.."
read -ra build_options <<<"${BUILD_OPTIONS:-}"
read -ra run_options <<<"${RUN_OPTIONS:-}"
image=localhost/weir:try
container=weir-try

# As distroless/cc-debian12: files of packages, without a shell to run their scripts.
if ! podman image exists localhost/weir-run-base; then
  mmdebstrap --variant=extract --include=libc6,libstdc++6,libgcc-s1,ca-certificates bookworm - | podman import - localhost/weir-run-base
fi
if ! podman image exists localhost/weir-build-base; then
  base=$(mmdebstrap --variant=minbase bookworm - | podman import -q -)
  working=$(buildah from "$base")
  prefix=$(dirname "$(dirname "$(node -p process.execPath)")")
  buildah copy -q "$working" "$prefix/bin/node" /usr/local/bin/node
  buildah copy -q "$working" "$prefix/lib/node_modules/npm" /usr/local/lib/node_modules/npm
  buildah config --env PATH=/usr/local/bin:/usr/bin:/bin ${BASE_ENV:+--env "$BASE_ENV"} "$working"
  buildah run --isolation chroot "$working" ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm
  buildah commit -q --rm "$working" localhost/weir-build-base
fi

# The Docker format, because that of OCI has no health check.
buildah bud --isolation chroot --format docker --platform "linux/$(podman info --format '{{.Host.Arch}}')" "${build_options[@]}" \
  --build-arg BUILD_IMAGE=localhost/weir-build-base --build-arg RUN_IMAGE=localhost/weir-run-base -t "$image" .

podman run -d --name "$container" "${run_options[@]}" --read-only --cap-drop=all --security-opt no-new-privileges \
  --memory 256m --pids-limit 100 -p 127.0.0.1::8080 -v "$PWD/examples:/rules:ro" \
  -e BACKEND_TYPE=memory -e DISABLE_STATS=true -e RUNTIME_ROOT=/rules "$image"
trap 'podman logs "$container"; podman rm -f "$container" >/dev/null' EXIT
for _ in $(seq 100); do
  podman healthcheck run "$container" >/dev/null 2>&1 && break
  sleep 0.2
done

function check() {
  echo "== $1"
  shift
  "$@"
}
check 'the health check of the image' podman healthcheck run "$container"
check 'a decision over HTTP' curl -sSf "http://$(podman port "$container" 8080)/json" \
  -d '{"domain": "shop", "descriptors": [{"entries": [{"key": "user", "value": "anna"}]}]}'
echo
check 'a decision over gRPC' podman exec "$container" \
  node /app/dist/cli/weir-client.js -domain shop -descriptors path=/orders,user=anna
check 'the user' podman exec "$container" node -p 'process.getuid() + ":" + process.getgid()'
check 'the command of the Go service, as another user' podman run --rm "${run_options[@]}" --read-only --cap-drop=all \
  --user 65534:65534 --entrypoint /bin/ratelimit "$image" --version
check 'no shell' bash -c "! podman exec $container /bin/sh -c true 2>/dev/null"
check 'memory' podman exec "$container" node -p 'fs.readFileSync("/proc/1/status", "utf8").match(/VmRSS.*/)[0]'
check 'the end by SIGTERM' podman stop "$container"
check 'exit code 0' test "$(podman inspect --format '{{.State.ExitCode}}' "$container")" = 0
echo "== sizes"
podman images --format '{{.Repository}} {{.Size}}' "$image"
echo "$(podman save --format docker-archive "$image" | gzip -6 | wc -c) bytes as gzip"
