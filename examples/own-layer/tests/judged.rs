//! Goal: the layer loses no data. Method: the checks that every layer must pass.

#[test]
fn it_keeps_what_layers_promise() {
    imbrex_layer::verify::judge::everything(&own_layer::INFO);
}
