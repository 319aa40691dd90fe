//! Classifies images on all cores: threads share the model and its classes, each with its own session. classify MODEL IMAGE...
use std::path::Path;
use std::process::ExitCode;
use std::thread;

use vit::{Classifier, Input, Model, Prediction, Results, Session, SessionOptions};

fn best_of(model: &Model, classes: &Classifier, image: &Path) -> vit::Result<Vec<Prediction>> {
    let mut session = Session::new(model, &SessionOptions { threads: 1, ..Default::default() })?;
    let mut results = Results::new()?;
    classes.run(&mut session, &[Input::Path(image)], &mut results)?;
    classes.top(&results, 0, 3)
}

fn run(folder: &str, images: &[String]) -> vit::Result<()> {
    let model = Model::load(folder, &Default::default())?;
    let classes = Classifier::of_model(&model)?;
    let found = thread::scope(|scope| {
        let (model, classes) = (&model, &classes);
        let started: Vec<_> = images.iter().map(|image| scope.spawn(move || best_of(model, classes, Path::new(image)))).collect();
        started.into_iter().map(|each| each.join().expect("no thread panics")).collect::<Vec<_>>()
    });
    for (image, best) in images.iter().zip(found) {
        for each in best? {
            println!("{:5.1} %  {}  {image}", 100.0 * each.probability, each.label);
        }
    }
    Ok(())
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.len() < 2 {
        eprintln!("usage: classify MODEL IMAGE...");
        return ExitCode::from(2);
    }
    match run(&arguments[0], &arguments[1..]) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
