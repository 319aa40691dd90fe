//! The safe types on models and images of the project.
use std::path::Path;
use std::thread;

use vit::*;

fn model() -> Model {
    Model::load(test_data("model"), &ModelOptions::default()).unwrap()
}

fn is_send_and_sync<T: Send + Sync>() {}
fn is_send<T: Send>() {}

#[test]
fn what_threads_may_share() {
    is_send_and_sync::<Model>();
    is_send_and_sync::<TextTower>();
    is_send_and_sync::<Tokenizer>();
    is_send_and_sync::<Classifier>();
    is_send_and_sync::<RopeTable<f32>>();
    is_send_and_sync::<RopeTable<f64>>();
    is_send::<Session>();
    is_send::<TextEncoder>();
    is_send::<Results>();
}

#[test]
fn images_in_every_form_have_the_same_vector() {
    let path = test_data("images/cat_tabby.jpg");
    let bytes = std::fs::read(&path).unwrap();
    let model = model();
    let info = model.info().unwrap();
    let mut session = Session::new(&model, &SessionOptions { threads: 1, ..Default::default() }).unwrap();
    drop(model); // the session keeps the weights
    let mut results = Results::new().unwrap();
    let request =
        Request { outputs: vec![Output::POOLED, Output::PATCHES], blocks: vec![-1], attention: vec![0], ..Default::default() };
    session.run(&[Input::Path(&path), Input::Encoded(&bytes)], &request, &mut results).unwrap();
    assert_eq!(results.len(), 2);
    let pooled = results.all(Output::POOLED, 0).unwrap();
    assert_eq!(pooled.shape(), [2, info.embed_dim]);
    let (first, second) = pooled.f32().unwrap().split_at(info.embed_dim);
    assert_eq!(first, second);
    let attention = results.one(0, Output::ATTENTION, 0).unwrap();
    assert_eq!(attention.shape()[0], info.num_heads);
    let tokens = attention.shape()[1];
    let row: f32 = attention.f32().unwrap()[..tokens].iter().sum();
    assert!((row - 1.0).abs() < 1e-5);
    assert_eq!(results.one(0, Output::BLOCK, -1).unwrap().shape(), [tokens, info.embed_dim]);
    assert!(results.image_size(0).unwrap().0 > 0);
    assert_eq!(pooled.u8().unwrap_err().kind(), ErrorKind::Argument);

    let pixels = vec![90u8; 32 * 40 * 4];
    let wide = Input::Pixels { data: &pixels, height: 32, width: 32, format: PixelFormat::Rgb, row_stride: 40 * 4 };
    let packed: Vec<u8> = vec![90u8; 32 * 32 * 3];
    let same = Input::Pixels { data: &packed, height: 32, width: 32, format: PixelFormat::Bgr, row_stride: 0 };
    session.run(&[wide, same], &Request::of(Output::POOLED), &mut results).unwrap();
    assert_eq!(
        results.one(0, Output::POOLED, 0).unwrap().f32().unwrap(),
        results.one(1, Output::POOLED, 0).unwrap().f32().unwrap()
    );
}

#[test]
fn failures_have_a_kind_and_a_message() {
    assert_eq!(Model::load("absent", &Default::default()).unwrap_err().kind(), ErrorKind::Io);
    assert_eq!(Model::load("a\0b", &Default::default()).unwrap_err().kind(), ErrorKind::Argument);
    let options = ModelOptions { kernels: "none".into(), ..Default::default() };
    let error = Model::random("vit_tiny_patch16_224", &options).unwrap_err();
    assert!(error.kind() == ErrorKind::Argument && error.to_string().contains("none"));
    let model = model();
    assert_eq!(model.label(99).unwrap_err().kind(), ErrorKind::Argument);
    assert_eq!(
        Session::new(&model, &SessionOptions { threads: -1, ..Default::default() }).unwrap_err().kind(),
        ErrorKind::Argument
    );
    let mut session = Session::new(&model, &Default::default()).unwrap();
    let mut results = Results::new().unwrap();
    let good = test_data("images/cat_tabby.jpg");
    let error =
        session.run(&[Input::Path(Path::new("no.jpg")), Input::Path(&good)], &Request::default(), &mut results).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert_eq!(results.status(0).unwrap_err().kind(), ErrorKind::Io);
    assert!(results.status(1).is_ok() && results.status(2).is_err());
    let vectors = results.all(Output::POOLED, 0).unwrap().f32().unwrap();
    assert!(vectors[0].is_nan() && vectors[vectors.len() - 1].is_finite());
    for (height, width, row_stride) in [(33, 32, 0), (usize::MAX, 2, 0), (2, usize::MAX, 0), (2, 2, usize::MAX)] {
        let data = [0u8; 32 * 32 * 3];
        let beyond = Input::Pixels { data: &data, height, width, format: PixelFormat::Rgb, row_stride };
        assert_eq!(session.run(&[beyond], &Request::default(), &mut results).unwrap_err().kind(), ErrorKind::Argument);
    }
}

#[test]
fn classes_of_the_model_and_of_texts() {
    let model = model();
    let classes = Classifier::of_model(&model).unwrap();
    assert_eq!(classes.len(), model.info().unwrap().num_classes);
    let names: Vec<String> = thread::scope(|scope| {
        let (model, classes) = (&model, &classes);
        let work = move |file: &'static str| {
            let mut session = Session::new(model, &SessionOptions { threads: 1, ..Default::default() }).unwrap();
            let mut results = Results::new().unwrap();
            let path = test_data("images").join(file);
            classes.run(&mut session, &[Input::Path(&path)], &mut results).unwrap();
            let best = classes.top(&results, 0, 2).unwrap();
            assert!(best.len() == 2 && best[0].probability >= best[1].probability);
            assert_eq!(classes.label(best[0].index).unwrap(), best[0].label);
            best[0].label.clone()
        };
        let all: Vec<_> =
            ["cat_tabby.jpg", "airplane_airliner.jpg"].into_iter().map(|file| scope.spawn(move || work(file))).collect();
        all.into_iter().map(|each| each.join().unwrap()).collect()
    });
    assert_eq!(names, ["cat", "airplane"]);

    let folder = test_data("golden/text/openclip-siglip");
    let tower = TextTower::load(&folder).unwrap();
    let mut encoder = TextEncoder::new(&tower, 1).unwrap();
    let mut results = Results::new().unwrap();
    encoder.run(&["a cat", "a dog"], true, &mut results).unwrap();
    let vectors = results.all(Output::TEXT, 0).unwrap();
    let length: f32 = vectors.f32().unwrap()[..vectors.shape()[1]].iter().map(|x| x * x).sum();
    assert!((length - 1.0).abs() < 1e-5);
    let ids = Tokenizer::load(&folder).unwrap().encode("a cat", 16).unwrap();
    assert_eq!(ids.len(), 16);
    let model = Model::load(&folder, &Default::default()).unwrap();
    let pets = Classifier::of_texts(&model, &mut encoder, &["cat", "dog"], &["a {}"]).unwrap();
    assert_eq!(pets.label(1).unwrap(), "dog");
    assert!(Classifier::of_texts(&model, &mut encoder, &["cat", "cat"], &[]).is_err());
}

#[test]
fn positions_and_parts() {
    let ladder = frequencies(Frequencies::Theta(100.0), 4).unwrap();
    assert!((ladder[2] - 0.1).abs() < 1e-15);
    let options = RopeOptions::default();
    let (x, y) = grid_coordinates(2, 3, &options).unwrap();
    assert_eq!((x[5], y[5]), (2.0, 1.0));
    let table = RopeTable::<f64>::axial(2, 3, &ladder, &options).unwrap();
    let (cos, sin) = table.factors().unwrap();
    assert_eq!(cos.shape(), [6, 8]);
    assert_eq!(cos.f64().unwrap()[8], 1f64.cos());
    let mut tokens = vec![0.0; 7 * 16];
    tokens[2 * 16] = 1.0; // the second patch, after one token that is not rotated
    table.rotate(&mut tokens, &[1, 7, 16], 1).unwrap();
    assert_eq!((tokens[2 * 16], tokens[2 * 16 + 1]), (cos.f64().unwrap()[8], sin.f64().unwrap()[8]));
    assert_eq!(table.rotate(&mut tokens, &[1, 6, 16], 0).unwrap_err().kind(), ErrorKind::Argument);
    assert!(RopeTable::<f32>::axial(0, 3, &ladder, &options).is_err());
    assert!(RopeTable::<f32>::line(&[], &ladder, Pairing::Halves).is_err());
    assert!(grid_coordinates(usize::MAX, 2, &options).is_err());
    assert!(frequencies(Frequencies::Theta(100.0), usize::MAX).is_err());

    let pixels: Vec<f32> = (0..32).map(|i| i as f32).collect();
    assert_eq!(patchify(&pixels, [1, 1, 4, 8], 4, 1).unwrap()[..5], [0.0, 1.0, 2.0, 3.0, 8.0]);
    assert!(patchify(&pixels, [1, 1, 4, 8], 0, 1).is_err() && patchify(&pixels, [1, 1, 4, 9], 4, 1).is_err());
    let q = vec![0.5f32; 6 * 16];
    let shape = [1, 6, 1, 16];
    let plain = attention(&q, &q, &q, shape, &AttentionOptions::default()).unwrap();
    assert!(plain.iter().all(|x| (x - 0.5).abs() < 1e-6));
    let table = RopeTable::<f32>::axial(2, 3, &ladder, &options).unwrap();
    let rotated = AttentionOptions { table: Some(&table), ..Default::default() };
    assert!(attention(&q, &q, &q, shape, &rotated).is_ok());
    let wrong = AttentionOptions { table: Some(&table), num_prefix_tokens: 1, ..Default::default() };
    assert!(attention(&q, &q, &q, shape, &wrong).is_err() && attention(&q, &q[1..], &q, shape, &rotated).is_err());
}
