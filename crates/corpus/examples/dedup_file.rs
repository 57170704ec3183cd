//! Removes near-duplicates from a file with the library:
//! `cargo run --release -p twindex-corpus --example dedup_file -- IN OUT`.

fn main() -> twindex_corpus::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [input, out] = arguments.as_slice() else { anyhow::bail!("usage: dedup_file IN OUT") };
    let report = twindex_corpus::Dedup::new([input], out).run()?;
    println!("{} of {} documents stay, in {out}", report.kept, report.input.documents);
    Ok(())
}
