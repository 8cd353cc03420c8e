//! An image of the Open Container Initiative (image-spec 1.1), written without a container engine: the binary, its user
//! and a configuration, nothing else.
//!
//! `target/package/oci` is the image layout, `target/package/headend-oci.tar` the same as one file, which
//! `podman load` and `skopeo copy oci-archive:` read.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::{IMAGE_MAX, Place, at, ensure, epoch, output};

/// The user and group of the daemon in the image.
const USER: &str = "65532";

const CONFIGURATION: &str = "\
[control]
socket = \"/run/headend/headend.sock\"

[lns]
listen = [\"0.0.0.0:1701\"]
";

fn layout(place: &Place) -> PathBuf {
    place.out.join("oci")
}

/// Writes the image, and checks its size.
pub(super) fn build(place: &Place) -> Result<String, String> {
    let layout = layout(place);
    let _ = fs::remove_dir_all(&layout);
    let blobs = layout.join("blobs/sha256");
    fs::create_dir_all(&blobs).map_err(at(&blobs))?;
    let epoch = epoch(&place.root)?;
    let (layer, content) = layer(place, &epoch)?;
    let mut date = Command::new("date");
    let created = output(date.args(["-u", "-d", &format!("@{epoch}"), "+%Y-%m-%dT%H:%M:%SZ"]))?;
    let config = configuration(created.trim(), &content);
    let kind = |what: &str| format!("application/vnd.oci.image.{what}");
    let config = descriptor(&blobs, &kind("config.v1+json"), Blob::Text(config))?;
    let layer = descriptor(&blobs, &kind("layer.v1.tar+gzip"), Blob::File(&layer))?;
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": kind("manifest.v1+json"),
        "config": config,
        "layers": [layer],
    });
    let mut manifest = descriptor(&blobs, &kind("manifest.v1+json"), Blob::Text(manifest))?;
    let version = env!("CARGO_PKG_VERSION");
    manifest["annotations"] = json!({"org.opencontainers.image.ref.name": version});
    manifest["platform"] = json!({"architecture": "amd64", "os": "linux"});
    let index = json!({
        "schemaVersion": 2,
        "mediaType": kind("index.v1+json"),
        "manifests": [manifest],
    });
    for (name, text) in [
        ("index.json", index.to_string()),
        (
            "oci-layout",
            json!({"imageLayoutVersion": "1.0.0"}).to_string(),
        ),
    ] {
        fs::write(layout.join(name), text).map_err(at(&layout))?;
    }
    let archive = place.out.join("headend-oci.tar");
    tar(
        &archive,
        &layout,
        &epoch,
        "0",
        &["blobs", "index.json", "oci-layout"],
        "-cf",
    )?;
    let bytes = archive.metadata().map_err(at(&archive))?.len();
    ensure(bytes <= IMAGE_MAX, || {
        format!(
            "{}: {bytes} bytes, {IMAGE_MAX} is the most",
            archive.display()
        )
    })?;
    Ok(format!(
        "{}: {:.1} MB",
        archive.display(),
        bytes as f64 / 1e6
    ))
}

/// The configuration of the image, whose only layer has this digest.
fn configuration(created: &str, content: &str) -> Value {
    json!({
        "created": created,
        "architecture": "amd64",
        "os": "linux",
        "config": {
            "User": format!("{USER}:{USER}"),
            "ExposedPorts": {"1701/udp": {}},
            "Entrypoint": ["/usr/bin/headend"],
            "Cmd": ["run", "--config", "/etc/headend/headend.toml"],
            "StopSignal": "SIGTERM",
            "Labels": {"org.opencontainers.image.title": "headend"},
        },
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{content}")]},
        "history": [{"created": created, "created_by": "cargo xtask package oci"}],
    })
}

/// Packs the files of the image. Returns the compressed layer, and the digest of its content.
fn layer(place: &Place, epoch: &str) -> Result<(PathBuf, String), String> {
    let root = place.out.join("image");
    let _ = fs::remove_dir_all(&root);
    for directory in [
        "usr/bin",
        "etc/headend",
        "run/headend",
        "var/lib/headend",
        "tmp",
    ] {
        let directory = root.join(directory);
        fs::create_dir_all(&directory).map_err(at(&directory))?;
    }
    let user = format!("headend:x:{USER}:{USER}:headend:/var/lib/headend:/sbin/nologin\n");
    for (name, text) in [
        (
            "etc/passwd",
            format!("root:x:0:0:root:/:/sbin/nologin\n{user}"),
        ),
        ("etc/group", format!("root:x:0:\nheadend:x:{USER}:\n")),
        ("etc/headend/headend.toml", CONFIGURATION.to_owned()),
    ] {
        fs::write(root.join(name), text).map_err(at(&root))?;
    }
    let binary = root.join("usr/bin/headend");
    fs::copy(place.out.join("headend"), &binary).map_err(at(&binary))?;
    let link = root.join("run/headend.sock");
    std::os::unix::fs::symlink("headend/headend.sock", &link).map_err(at(&link))?;
    output(Command::new("chmod").args(["-R", "u=rwX,go=rX"]).arg(&root))?;
    output(Command::new("chmod").arg("1777").arg(root.join("tmp")))?;
    let layer = place.out.join("layer.tar");
    tar(
        &layer,
        &root,
        epoch,
        "0",
        &["etc", "usr", "tmp", "run/headend.sock"],
        "-cf",
    )?;
    tar(
        &layer,
        &root,
        epoch,
        USER,
        &["run/headend", "var/lib/headend"],
        "-rf",
    )?;
    let content = digest(&layer)?;
    output(
        Command::new("gzip")
            .args(["-9", "--no-name", "--force"])
            .arg(&layer),
    )?;
    Ok((place.out.join("layer.tar.gz"), content))
}

/// Packs files so that the same files give the same bytes.
fn tar(
    archive: &Path,
    root: &Path,
    epoch: &str,
    owner: &str,
    what: &[&str],
    how: &str,
) -> Result<(), String> {
    let mut tar = Command::new("tar");
    tar.arg(how).arg(archive).arg("-C").arg(root);
    tar.args(["--sort=name", "--format=ustar", "--numeric-owner"]);
    tar.arg(format!("--mtime=@{epoch}"));
    tar.arg(format!("--owner={owner}"))
        .arg(format!("--group={owner}"));
    output(tar.args(what)).map(drop)
}

enum Blob<'a> {
    Text(Value),
    File(&'a Path),
}

/// Stores a blob by its digest, and returns its descriptor.
fn descriptor(blobs: &Path, kind: &str, blob: Blob<'_>) -> Result<Value, String> {
    let fresh = blobs.join("new");
    match blob {
        Blob::Text(value) => fs::write(&fresh, value.to_string()).map_err(at(&fresh))?,
        Blob::File(path) => fs::rename(path, &fresh).map_err(at(path))?,
    }
    let digest = digest(&fresh)?;
    let size = fresh.metadata().map_err(at(&fresh))?.len();
    fs::rename(&fresh, blobs.join(&digest)).map_err(at(&fresh))?;
    Ok(json!({"mediaType": kind, "digest": format!("sha256:{digest}"), "size": size}))
}

fn digest(file: &Path) -> Result<String, String> {
    let text = output(Command::new("sha256sum").arg(file))?;
    Ok(text.split(' ').next().unwrap_or_default().to_owned())
}

/// Reads the image as an engine would: from the index to the layer, each blob by its digest; then runs the binary with
/// the layer as its root.
pub(super) fn verify(place: &Place) -> Result<String, String> {
    let layout = layout(place);
    let index = layout.join("index.json");
    let index = fs::read_to_string(&index).map_err(at(&index))?;
    let index: Value = serde_json::from_str(&index).map_err(|error| error.to_string())?;
    let manifest = text(&layout, &index["manifests"][0])?;
    let config = text(&layout, &manifest["config"])?;
    let layer = blob(&layout, &manifest["layers"][0])?;
    let root = place.out.join("image-root");
    let _ = fs::remove_dir_all(&root);
    fs::create_dir_all(&root).map_err(at(&root))?;
    let content = place.out.join("verified.tar");
    let gunzip = format!("gzip -dc {} > {}", layer.display(), content.display());
    output(Command::new("sh").args(["-c", &gunzip]))?;
    let found = format!("sha256:{}", digest(&content)?);
    ensure(config["rootfs"]["diff_ids"] == json!([found]), || {
        format!("the layer's content is {found}, the configuration says {config}")
    })?;
    let user = config["config"]["User"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    ensure(!user.is_empty() && !user.starts_with('0'), || {
        format!("it runs as user {user:?}")
    })?;
    output(
        Command::new("tar")
            .arg("-xf")
            .arg(&content)
            .arg("-C")
            .arg(&root),
    )?;
    let _ = fs::remove_file(&content);
    let mut command = Command::new("chroot");
    command.arg(format!("--userspec={user}")).arg(&root);
    command.args(["/usr/bin/headend", "check", "/etc/headend/headend.toml"]);
    let said = output(&mut command)?;
    ensure(said.ends_with(": ok\n"), || said.clone())?;
    let _ = fs::remove_dir_all(&root);
    Ok(format!("user {user}, {}", said.trim()))
}

/// The file of a blob, whose digest and size are right.
fn blob(layout: &Path, descriptor: &Value) -> Result<PathBuf, String> {
    let name = descriptor["digest"].as_str().unwrap_or_default();
    let name = name.strip_prefix("sha256:").unwrap_or_default();
    let file = layout.join("blobs/sha256").join(name);
    let size = file.metadata().map_err(at(&file))?.len();
    let is_right = digest(&file)? == name && descriptor["size"] == size;
    ensure(is_right, || {
        format!("{} is not {descriptor}", file.display())
    })?;
    Ok(file)
}

fn text(layout: &Path, descriptor: &Value) -> Result<Value, String> {
    let file = blob(layout, descriptor)?;
    let text = fs::read_to_string(&file).map_err(at(&file))?;
    serde_json::from_str(&text).map_err(|error| format!("{}: {error}", file.display()))
}
