//! Loads every program of the objects in a folder with the kernel's verifier: `load_objects FOLDER`
//! (as root).

use std::path::Path;
use std::process::ExitCode;

use spray_switch::program::check_folder;

fn main() -> ExitCode {
    let folder = std::env::args().nth(1).unwrap_or_else(|| ".".into());
    let checked = match check_folder(Path::new(&folder)) {
        Ok(checked) => checked,
        Err(error) => {
            eprintln!("{folder}: {error}");
            return ExitCode::from(2);
        }
    };
    let mut refused = false;
    for program in checked {
        match program.verified {
            Ok(instructions) => println!("{}: {instructions} instructions verified", program.program),
            Err(error) => {
                eprintln!("{error}");
                refused = true;
            }
        }
    }
    ExitCode::from(u8::from(refused))
}
