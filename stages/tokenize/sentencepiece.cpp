// The only C++ file: libsentencepiece behind functions that C can call.
#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <exception>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

extern "C" {
#include "stages/tokenize/sentencepiece.h"
#include "stages/tokenize/tokenizer_kind.h"
}

#ifndef SENTENCEPIECE_VERSION
#define SENTENCEPIECE_VERSION "of unknown version"
#endif

using sentencepiece::SentencePieceProcessor;

namespace {

// Runs `work`, which returns an enum status, and turns exceptions into one: none may leave this
// file.
template <class Work> enum status guarded(Work work) {
  try {
    return work();
  } catch (const std::exception &problem) {
    FAIL(STATUS_ENVIRONMENT, "libsentencepiece gave up: %s", problem.what());
  }
}

class Sentences : public sentencepiece::SentenceIterator {
public:
  explicit Sentences(const struct sentences &source) : source_(source) {
    Next();
  }
  bool done() const override {
    return done_;
  }
  void Next() override {
    const char *bytes = nullptr;
    size_t count = 0;
    done_ = !source_.next(source_.state, &bytes, &count);
    if (!done_) value_.assign(bytes, count);
  }
  const std::string &value() const override {
    return value_;
  }
  sentencepiece::util::Status status() const override {
    return sentencepiece::util::Status();
  }

private:
  struct sentences source_;
  bool done_ = false;
  std::string value_;
};

enum status encode(struct tokenizer *tokenizer, struct tokens *ids, const char *bytes,
                   size_t count) {
  return guarded([&]() -> enum status {
    std::vector<int> found;
    const auto *library = static_cast<const SentencePieceProcessor *>(tokenizer->state);
    const auto status = library->Encode(absl::string_view(bytes, count), &found);
    CHECK(status.ok(), STATUS_INTERNAL, "libsentencepiece cannot encode: %s", status.message());
    return tokens_add(ids, found.data(), found.size());
  });
}

enum status decode(const struct tokenizer *tokenizer, struct text *text, const int32_t *ids,
                   size_t count) {
  return guarded([&]() -> enum status {
    std::string found;
    const auto *library = static_cast<const SentencePieceProcessor *>(tokenizer->state);
    const auto status = library->Decode(std::vector<int>(ids, ids + count), &found);
    CHECK(status.ok(), STATUS_INTERNAL, "libsentencepiece cannot decode: %s", status.message());
    return text_add_bytes(text, found.data(), found.size());
  });
}

void close_library(void *state) {
  delete static_cast<SentencePieceProcessor *>(state);
}

/* What the library says, without the place in its sources: "file.cc(1) [condition] reason". */
const char *reason(const char *message) {
  const char *end = std::strstr(message, "] ");
  return end ? end + 2 : message;
}

const struct tokenizer_methods methods = {encode, decode, close_library};

} // namespace

const char *sentencepiece_version(void) {
  return "libsentencepiece " SENTENCEPIECE_VERSION;
}

enum status sentencepiece_open(struct tokenizer *tokenizer) {
  tokenizer->methods = &methods;
  return guarded([&]() -> enum status {
    auto library = std::make_unique<SentencePieceProcessor>();
    const auto status = library->LoadFromSerializedProto(
        absl::string_view(tokenizer->model.bytes, tokenizer->model.length));
    CHECK(status.ok(), STATUS_DAMAGED, "not a SentencePiece model: %s", status.message());
    struct tokenizer_facts *facts = &tokenizer->facts;
    tokenizer->rules = "sentencepiece 1";
    facts->reference = sentencepiece_version();
    facts->vocabulary_size = library->GetPieceSize();
    facts->pad = library->pad_id();
    facts->eos = library->eos_id();
    facts->unk = library->unk_id();
    facts->bos = library->bos_id();
    facts->lossless = false;
    tokenizer->state = library.release();
    return STATUS_OK;
  });
}

enum status sentencepiece_train(struct text *model, struct sentences sentences,
                                int32_t vocabulary_size) {
  return guarded([&]() -> enum status {
    const std::unordered_map<std::string, std::string> options = {
        {"model_type", "unigram"},
        {"vocab_size", std::to_string(vocabulary_size)},
        {"normalization_rule_name", "nmt_nfkc"},
        {"character_coverage", "0.9995"},
        {"num_threads", "1"},
        {"shuffle_input_sentence", "false"},
        {"max_sentence_length", "16384"},
        {"pad_id", "0"},
        {"eos_id", "1"},
        {"unk_id", "2"},
        {"bos_id", "-1"},
        {"minloglevel", "2"}};
    Sentences source(sentences);
    std::string bytes;
    const auto status = sentencepiece::SentencePieceTrainer::Train(options, &source, &bytes);
    CHECK(status.ok(), STATUS_MISMATCH,
          "a vocabulary of %d pieces cannot be trained on this text (%s); give more text or "
          "another vocabulary_size, or use tokenizer: byte",
          vocabulary_size, reason(status.message()));
    text_clear(model);
    return text_add_bytes(model, bytes.data(), bytes.size());
  });
}
