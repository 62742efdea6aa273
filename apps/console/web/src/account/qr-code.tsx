/** The QR code of its library, as a module of its own for `lazy`. */
export { QRCodeSVG as default } from 'qrcode.react';
