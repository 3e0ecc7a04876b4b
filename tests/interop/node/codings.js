// The codings that kafkajs leaves to others.
'use strict'

const { CompressionCodecs, CompressionTypes } = require('kafkajs')
const SnappyCodec = require('kafkajs-snappy')
const fzstd = require('fzstd')
const lz4 = require('lz4-napi')
const zstd = require('@bokuweb/zstd-wasm')

const Lz4Codec = () => ({
  compress: async encoder => lz4.compressFrame(encoder.buffer),
  decompress: async buffer => lz4.decompressFrame(buffer),
})

const ZstdCodec = () => ({
  compress: async encoder => Buffer.from(zstd.compress(encoder.buffer)),
  // Streams of other clients do not say their size beforehand, which the WASM build wants to know.
  decompress: async buffer => Buffer.from(fzstd.decompress(buffer)),
})

async function install() {
  await zstd.init()
  CompressionCodecs[CompressionTypes.Snappy] = SnappyCodec
  CompressionCodecs[CompressionTypes.LZ4] = Lz4Codec
  CompressionCodecs[CompressionTypes.ZSTD] = ZstdCodec
}

const TYPES = {
  none: CompressionTypes.None,
  gzip: CompressionTypes.GZIP,
  snappy: CompressionTypes.Snappy,
  lz4: CompressionTypes.LZ4,
  zstd: CompressionTypes.ZSTD,
}

module.exports = { install, TYPES }
