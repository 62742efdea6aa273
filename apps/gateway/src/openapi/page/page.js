// Started from a file, as the page's policy allows no inline script. Credentials that are typed in stay in this page.
SwaggerUIBundle({
  url: 'docs/api/openapi.yaml',
  dom_id: '#swagger-ui',
  deepLinking: true,
  defaultModelsExpandDepth: 0,
  validatorUrl: null,
});
