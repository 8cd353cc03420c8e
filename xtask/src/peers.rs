//! Requirements of the interop tests: other projects' daemons, and permission to create network namespaces.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// A program and the Debian package that has it.
struct Need {
    program: &'static str,
    package: &'static str,
}

const NEEDS: &[Need] = &[
    Need {
        program: "xl2tpd",
        package: "xl2tpd",
    },
    Need {
        program: "pppd",
        package: "ppp",
    },
    Need {
        program: "dhcp6c",
        package: "wide-dhcpv6-client",
    },
    Need {
        program: "dhcpcd",
        package: "dhcpcd-base",
    },
    Need {
        program: "dhcp6s",
        package: "wide-dhcpv6-server",
    },
    Need {
        program: "radvd",
        package: "radvd",
    },
    Need {
        program: "pppoe-server",
        package: "pppoe",
    },
    Need {
        program: "l2tpns",
        package: "l2tpns",
    },
    Need {
        program: "freeradius",
        package: "freeradius",
    },
    Need {
        program: "radclient",
        package: "freeradius-utils",
    },
    Need {
        program: "nfcapd",
        package: "nfdump",
    },
    Need {
        program: "curl",
        package: "curl",
    },
    Need {
        program: "bgpd",
        package: "frr",
    },
    Need {
        program: "bird",
        package: "bird2",
    },
    Need {
        program: "gobgpd",
        package: "gobgpd",
    },
    Need {
        program: "snmpd",
        package: "snmpd",
    },
    Need {
        program: "snmpbulkwalk",
        package: "snmp",
    },
    Need {
        program: "tcptrace",
        package: "tcptrace",
    },
    Need {
        program: "chromium",
        package: "chromium",
    },
    Need {
        program: "tmux",
        package: "tmux",
    },
    Need {
        program: "tshark",
        package: "tshark",
    },
    Need {
        program: "go",
        package: "golang-go",
    },
    Need {
        program: "qemu-system-x86_64",
        package: "qemu-system-x86",
    },
    Need {
        program: "busybox",
        package: "busybox-static",
    },
    Need {
        program: "cpio",
        package: "cpio",
    },
    Need {
        program: "depmod",
        package: "kmod",
    },
    Need {
        program: "ping",
        package: "iputils-ping",
    },
    Need {
        program: "fping",
        package: "fping",
    },
    Need {
        program: "python3",
        package: "python3",
    },
    Need {
        program: "tcpdump",
        package: "tcpdump",
    },
    Need {
        program: "iperf3",
        package: "iperf3",
    },
    Need {
        program: "ethtool",
        package: "ethtool",
    },
    Need {
        program: "sshd",
        package: "openssh-server",
    },
    Need {
        program: "scp",
        package: "openssh-client",
    },
    Need {
        program: "nft",
        package: "nftables",
    },
    Need {
        program: "ip",
        package: "iproute2",
    },
    Need {
        program: "unshare",
        package: "util-linux",
    },
];

/// Directories of daemons that are not in an ordinary user's PATH, and Go's own.
const MORE_PATHS: &[&str] = &[
    "/usr/local/sbin",
    "/usr/sbin",
    "/sbin",
    "/usr/lib/frr",
    "/usr/local/go/bin",
];

/// Ensures that every program is installed, installing missing ones where permitted, and that this user may
/// create network namespaces.
///
/// # Errors
/// The command that would help, or that there is none and how to skip the interop tests.
pub(crate) fn ready() -> Result<String, Vec<String>> {
    let missing = missing();
    if !missing.is_empty() {
        install(&missing)?;
    }
    may_make_namespaces()?;
    Ok(format!("{} programs are there", NEEDS.len()))
}

fn missing() -> Vec<&'static str> {
    NEEDS
        .iter()
        .filter(|need| !is_there(need.program))
        .map(|need| need.package)
        .collect()
}

fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).any(|directory| directory.join(program).is_file());
    on_path
        || MORE_PATHS
            .iter()
            .any(|directory| Path::new(directory).join(program).is_file())
}

fn is_root() -> bool {
    // A process's own directory in /proc belongs to its effective user.
    std::fs::metadata("/proc/self").is_ok_and(|metadata| metadata.uid() == 0)
}

fn install(packages: &[&str]) -> Result<(), Vec<String>> {
    let line = format!(
        "apt-get install -y --no-install-recommends {}",
        packages.join(" ")
    );
    let advice = |why: &str| {
        vec![
            format!("{why}; the interop tests need: {}", packages.join(" ")),
            format!("run:  {line}"),
            "or leave the interop tests out:  cargo xtask test --without-peers".to_owned(),
        ]
    };
    if !is_root() {
        return Err(advice(
            "packages are missing, and only root may install them",
        ));
    }
    println!("{line}");
    // The package lists may be older than the archive; after an update, a second failure is final.
    if !apt_get_install(packages) {
        apt_get(&["update"]);
        apt_get_install(packages);
    }
    if missing().is_empty() {
        Ok(())
    } else {
        Err(advice(
            "packages are missing, and apt-get did not install them",
        ))
    }
}

fn apt_get_install(packages: &[&str]) -> bool {
    let mut arguments = vec!["install", "-y", "--no-install-recommends"];
    arguments.extend(packages);
    apt_get(&arguments)
}

fn apt_get(arguments: &[&str]) -> bool {
    Command::new("apt-get")
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive")
        // Without a run level, installing a daemon does not start it.
        .env("RUNLEVEL", "1")
        .stdin(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

fn may_make_namespaces() -> Result<(), Vec<String>> {
    let user: &[&str] = if is_root() {
        &[]
    } else {
        &["--user", "--map-root-user"]
    };
    let output = Command::new("unshare")
        .args(user)
        .args(["--mount", "--net", "--pid", "--fork", "true"])
        .output()
        .map_err(|error| vec![format!("cannot start unshare: {error}")])?;
    if output.status.success() {
        return Ok(());
    }
    Err(vec![
        format!(
            "no leave to make network namespaces: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        ),
        "run as root, or leave the interop tests out:  cargo xtask test --without-peers".to_owned(),
    ])
}
