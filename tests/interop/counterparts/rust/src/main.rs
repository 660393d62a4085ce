//! The Rust SDK as a counterpart: what steps.py and isthmus_server.py say, in one program.
//!
//!     counterpart client PLAN
//!     counterpart server stdio | http PORT
#![allow(deprecated)] // roots, sampling and logging are, and are spoken all the same
mod client;
mod server;

#[tokio::main]
async fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words[0].as_str() {
        "client" => client::visit(&words[1]).await,
        _ => server::serve(&words[1..]).await,
    }
}
