//! Prints the connections of captures, with their round-trip times and retransmissions.
//!
//! ```sh
//! cargo run -p headend-trace --example connections -- capture.pcap.gz
//! ```

use std::process::ExitCode;

use trace::{Captures, Direction, Error, Options};

fn main() -> ExitCode {
    let paths: Vec<_> = std::env::args_os().skip(1).collect();
    match print(Captures::open(&paths, Options::default())) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("connections: {error}");
            ExitCode::FAILURE
        }
    }
}

/// False if something is wrong with a file.
fn print(captures: Captures) -> Result<bool, Error> {
    let found = captures.read()?;
    for connection in found.connections() {
        let connection = connection?;
        let ((a, a_port), (b, b_port)) = (connection.a_end(), connection.b_end());
        println!(
            "{}: {a}:{a_port} - {b}:{b_port}, {} packets",
            connection.number, connection.packets
        );
        print_direction("a to b", &connection.a);
        print_direction("b to a", &connection.b);
    }
    for file in found.files().iter().filter(|file| !file.is_good()) {
        eprintln!("{}: {:?} {:?}", file.name, file.error, file.faults);
    }
    println!("{} IP packets in all", found.summary().packets);
    Ok(found.is_good())
}

fn print_direction(name: &str, direction: &Direction) {
    let (bytes, again) = (direction.unique_bytes, direction.retransmitted_packets);
    print!("  {name}: {bytes} bytes, {again} packets retransmitted");
    let rtt = &direction.rtt;
    if rtt.count > 0 {
        let ms = |ns: i64| ns as f64 / 1e6;
        print!(
            ", round trips {:.3} to {:.3} ms ({} measured)",
            ms(rtt.min),
            ms(rtt.max),
            rtt.count
        );
    }
    println!();
}
