//! The simulator for web pages: experiment files and runs, without logic.
//!
//! Experiments and errors cross the border as JSON, columns of tables as typed arrays.

mod experiment;
mod facts;
mod own;
mod run;

use wasm_bindgen::prelude::*;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_namespace = console, js_name = error)]
    fn console_error(text: &str);
}

/// Panics are written to the console, as a page shows no other output.
#[wasm_bindgen(start)]
pub fn start() {
    std::panic::set_hook(Box::new(|info| console_error(&info.to_string())));
}

/// The version of the engine.
#[wasm_bindgen]
#[must_use]
pub fn version() -> String {
    env!("CARGO_PKG_VERSION").to_owned()
}
