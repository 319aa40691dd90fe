//! Embeds images: prints how alike each is to the first. embed MODEL IMAGE...
use std::path::PathBuf;
use std::process::ExitCode;

use vit::{Input, Model, Output, Request, Results, Session};

fn run(model: &str, images: &[PathBuf]) -> vit::Result<()> {
    let model = Model::load(model, &Default::default())?;
    let mut session = Session::new(&model, &Default::default())?;
    let mut results = Results::new()?;
    let inputs: Vec<Input> = images.iter().map(|path| Input::Path(path)).collect();
    let request = Request { normalize: true, ..Request::default() }; // projected where the model has it, else pooled
    session.run(&inputs, &request, &mut results)?;
    let name = if model.info()?.projection_dim != 0 { Output::PROJECTED } else { Output::POOLED };
    let first = results.one(0, name, 0)?.f32()?;
    for (i, path) in images.iter().enumerate() {
        let vector = results.one(i, name, 0)?.f32()?;
        let cosine: f32 = first.iter().zip(vector).map(|(a, b)| a * b).sum();
        println!("{cosine:.4}  {}", path.display());
    }
    Ok(())
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.len() < 2 {
        eprintln!("usage: embed MODEL IMAGE...");
        return ExitCode::from(2);
    }
    let images: Vec<PathBuf> = arguments[1..].iter().map(PathBuf::from).collect();
    if let Err(error) = run(&arguments[0], &images) {
        eprintln!("{error}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
